(function () {
  "use strict";
  var root = document.documentElement, button = document.getElementById("theme"), tip = document.getElementById("tip");
  function dark() {
    var set = root.getAttribute("data-theme");
    return set ? set === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function name() { button.textContent = dark() ? "Light colours" : "Dark colours"; }
  button.addEventListener("click", function () { root.setAttribute("data-theme", dark() ? "light" : "dark"); name(); });
  name();
  document.querySelectorAll("abbr").forEach(function (word) {
    var means = word.title;
    word.removeAttribute("title"); word.setAttribute("aria-description", means);
    function say() {
      var box = word.getBoundingClientRect();
      tip.textContent = means; tip.style.display = "block";
      var w = tip.offsetWidth, h = tip.offsetHeight;
      tip.style.left = Math.max(6, Math.min(box.left, window.innerWidth - w - 6)) + "px";
      tip.style.top = (box.top - h - 8 > 4 ? box.top - h - 8 : box.bottom + 8) + "px";
    }
    word.addEventListener("pointerenter", say);
    word.addEventListener("click", say);
    word.addEventListener("pointerleave", function () { tip.style.display = "none"; });
  });
  document.querySelectorAll(".chart > svg").forEach(function (svg) {
    var marks = Array.prototype.map.call(svg.querySelectorAll(".mark"), function (mark) {
      var title = mark.querySelector("title"), says = title ? title.textContent : "";
      if (title) title.remove();
      var column = mark.tagName === "rect", at = function (key) { return parseFloat(mark.getAttribute(key)); };
      return column
        ? { x: at("x") + at("width") / 2, y: at("y"), bottom: at("y") + at("height"), left: at("x"), right: at("x") + at("width"), says: says }
        : { x: at("cx"), y: at("cy"), says: says };
    });
    if (!marks.length) return;
    var ring = document.createElementNS("http://www.w3.org/2000/svg", "circle"), chosen = -1;
    ring.setAttribute("r", "5"); ring.setAttribute("class", "ring"); ring.style.display = "none"; svg.appendChild(ring);
    function far(mark, x, y) {
      if (mark.left === undefined) return Math.hypot(mark.x - x, mark.y - y);
      var dx = Math.max(mark.left - x, 0, x - mark.right), dy = Math.max(mark.y - y, 0, y - mark.bottom);
      return Math.hypot(dx, dy);
    }
    function show(place) {
      chosen = place;
      var mark = marks[place], box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      ring.style.display = ""; ring.setAttribute("cx", mark.x); ring.setAttribute("cy", mark.y);
      tip.textContent = mark.says; tip.style.display = "block";
      var x = box.left + mark.x * scale, y = box.top + mark.y * scale, w = tip.offsetWidth, h = tip.offsetHeight;
      tip.style.left = Math.max(6, Math.min(x - w / 2, window.innerWidth - w - 6)) + "px";
      tip.style.top = (y - h - 12 > 4 ? y - h - 12 : y + 14) + "px";
    }
    function hide() { chosen = -1; tip.style.display = "none"; ring.style.display = "none"; }
    function nearest(event) {
      var box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      var x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale, best = 0, least = Infinity;
      marks.forEach(function (mark, place) { var d = far(mark, x, y); if (d < least) { least = d; best = place; } });
      if (least < 60) show(best); else hide();
    }
    svg.addEventListener("pointermove", nearest);
    svg.addEventListener("pointerdown", nearest);
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", function (event) {
      var by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (event.key === "Escape") hide();
      if (!by) return;
      event.preventDefault();
      show(chosen < 0 ? 0 : (chosen + by + marks.length) % marks.length);
    });
  });
})();
