use super::faults::{Refusal, with_refusal};
use super::*;
use std::collections::BTreeSet;
use std::ffi::OsString;

fn names(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("read").file_name()).collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("read")
}

#[test]
fn a_failed_write_leaves_the_older_file_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    write_text(&path, "old").expect("written");
    let failed = write_file(&path, |_| Err(io::ErrorKind::StorageFull.into()));
    assert!(failed.expect_err("the disk is full").to_string().contains("config.toml"));
    assert_eq!(text(&path), "old");
    assert_eq!(names(folder.path()).len(), 1);
    write_text(&path, "new").expect("written");
    assert_eq!(text(&path), "new");
}

#[test]
fn every_call_may_fail_and_the_last_good_file_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let long = "x".repeat(200_000);
    type Work<'a> = &'a dyn Fn() -> Result<()>;
    let works: [(&str, Work<'_>); 3] = [
        ("write", &|| write_text(&b, &long)),
        ("append", &|| append_line(&b, &long)),
        ("duplicate", &|| duplicate(&a, &b)),
    ];
    for (name, work) in works {
        for how in [Refusal::Once, Refusal::Lasting] {
            for call in 0.. {
                for (path, text) in [(&a, "original"), (&b, "old\n")] {
                    // Both may be names of one file.
                    let _ = fs::remove_file(path);
                    fs::write(path, text).expect("written");
                }
                let (result, calls) = with_refusal(call, how, work);
                assert_eq!(text(&a), "original", "{name} {call}");
                assert_eq!(names(folder.path()).len(), 2, "{name} {call}");
                if calls <= call {
                    result.expect("nothing was refused");
                    break;
                }
                match result {
                    // A link that is refused becomes a copy.
                    Ok(()) => assert_eq!((name, text(&b).as_str()), ("duplicate", "original")),
                    Err(_) => assert_eq!(text(&b), "old\n", "{name} {call}"),
                }
            }
        }
    }
}

#[test]
fn a_second_name_for_a_file_that_has_it_already_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    write_text(&a, "1").expect("written");
    duplicate(&a, &b).expect("linked");
    duplicate(&a, &b).expect("linked again");
    assert_eq!(names(folder.path()).len(), 2);
    write_text(&a, "2").expect("written");
    assert_eq!(text(&b), "1");
}

#[test]
fn lines_are_added_one_after_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics.jsonl");
    append_line(&path, "{\"epoch\":1}").expect("written");
    append_line(&path, "{\"epoch\":2}").expect("written");
    assert_eq!(text(&path), "{\"epoch\":1}\n{\"epoch\":2}\n");
}

#[cfg(unix)]
#[test]
fn a_link_is_replaced_and_what_it_leads_to_is_not_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let (victim, link) = (folder.path().join("victim"), folder.path().join("report.json"));
    fs::write(&victim, "precious").expect("written");
    let works: [fn(&Path) -> Result<()>; 3] = [
        |link| write_text(link, "new"),
        |link| append_line(link, "new"),
        |link| duplicate(&link.with_file_name("victim"), link),
    ];
    for work in works {
        std::os::unix::fs::symlink(&victim, &link).expect("a link");
        work(&link).expect("written");
        assert!(fs::symlink_metadata(&link).expect("there").is_file());
        assert_eq!(text(&victim), "precious");
        fs::remove_file(&link).expect("removed");
    }
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &link).expect("a link");
    write_text(&link, "new").expect("written");
    assert!(!folder.path().join("nowhere").exists());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("a folder");
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    let socket = folder.path().join("socket");
    let _socket = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
    for (path, what) in [
        (inner.as_path(), "is a folder"),
        (&fifo, "is a named pipe"),
        (&socket, "is a socket"),
        (&link, "is a link to a device"),
        (Path::new("/dev/null"), "is a name of the system in /dev"),
    ] {
        let before = names(folder.path());
        let (file, shown) = (folder.path().join("file"), path.display().to_string());
        fs::write(&file, "1").expect("written");
        for result in [write_text(path, "x"), append_line(path, "x"), duplicate(&file, path)] {
            let error = result.expect_err("refused").to_string();
            assert!(error.starts_with(&shown) && error.contains(what), "{error}");
            assert!(error.contains("name a file"), "{error}");
        }
        fs::remove_file(&file).expect("removed");
        assert_eq!(names(folder.path()), before);
    }
}

#[cfg(unix)]
#[test]
fn names_need_not_be_utf_8_or_short() {
    use std::os::unix::ffi::OsStringExt;
    let folder = tempfile::tempdir().expect("a folder");
    for name in [OsString::from_vec(vec![b'a', 0xff]), "x".repeat(255).into()] {
        let path = folder.path().join(name);
        write_text(&path, "1").expect("written");
        assert_eq!(read_text(&path, 1).expect("read"), "1");
    }
}

#[test]
fn a_file_beyond_the_limit_is_refused_with_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    fs::write(&path, "12é").expect("written");
    assert_eq!(read_text(&path, 4).expect("as long as allowed"), "12é");
    for most in [2, 3] {
        let error = read_text(&path, most).expect_err("longer").to_string();
        assert!(error.contains("config.toml: has more than"), "{error}");
        assert!(error.contains(&format!("{most} bytes")), "{error}");
    }
    assert!(too_long(&path, REPORT_LIMIT).to_string().contains("64 MiB"));
    #[cfg(unix)]
    assert!(read_text("/dev/zero", 1 << 20).expect_err("endless").to_string().contains("1 MiB"));
}

#[test]
fn a_folder_has_one_writer_and_loses_what_was_left_unfinished() {
    let folder = tempfile::tempdir().expect("a folder");
    let left = folder.path().join(".lstep-0123456789abcdef.partial");
    let former = folder.path().join(".last.safetensors.partial");
    let kept = folder.path().join("my.partial");
    for path in [&left, &former, &kept] {
        fs::write(path, "half").expect("written");
    }
    let lock = FolderLock::acquire(folder.path()).expect("nobody else");
    assert!(!left.exists() && !former.exists() && kept.exists());
    fs::write(&left, "of the writer").expect("written");
    let refused = FolderLock::acquire(folder.path()).expect_err("taken").to_string();
    let shown = folder.path().display().to_string();
    assert!(refused.starts_with(&shown) && refused.contains("another process"), "{refused}");
    assert!(left.exists(), "only the writer removes anything");
    drop(lock);
    assert!(!folder.path().join(".lock").exists(), "it goes with the lock");
    FolderLock::acquire(folder.path()).expect("free again");
}

#[test]
fn a_file_has_one_writer_and_others_beside_it_are_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x".repeat(250));
    let left = folder.path().join(".lstep-0123456789abcdef.partial");
    let anybodys = folder.path().join(".mine.partial");
    fs::write(&left, "half").expect("written");
    fs::write(&anybodys, "not ours").expect("written");
    let lock = FileLock::acquire(&path).expect("nobody else");
    assert!(!left.exists() && anybodys.exists());
    let refused = FileLock::acquire(&path).expect_err("taken").to_string();
    assert!(refused.contains("another process is writing this file"), "{refused}");
    let other = folder.path().join("other");
    write_file(&other, |out| {
        // What is being written is not taken for a leftover, neither by its neighbours nor by
        // whoever has the whole folder.
        FileLock::acquire(folder.path().join("third")).expect("another file");
        FolderLock::acquire(folder.path()).expect("nobody else");
        out.write_all(b"whole")
    })
    .expect("written");
    assert_eq!(text(&other), "whole");
    drop(lock);
    assert_eq!(names(folder.path()), [OsString::from("other")].into());
}

#[test]
fn of_many_who_want_a_folder_one_at_a_time_has_it() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let folder = tempfile::tempdir().expect("a folder");
    let (writers, had) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // Each until it has had it often enough: on a busy machine all tries of one can fall
                // into the turn of another.
                let mut turns = 0;
                while turns < 200 {
                    let Ok(_lock) = FolderLock::acquire(folder.path()) else {
                        std::thread::yield_now();
                        continue;
                    };
                    turns += 1;
                    assert_eq!(writers.fetch_add(1, Ordering::SeqCst), 0);
                    had.fetch_add(1, Ordering::SeqCst);
                    writers.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(had.load(Ordering::SeqCst), 800);
}

#[cfg(unix)]
#[test]
fn a_lock_goes_with_its_process() {
    const PATH: &str = "LSTEP_TEST_FOLDER_LOCK";
    if let Some(path) = std::env::var_os(PATH) {
        let _lock = FolderLock::acquire(&path).expect("free");
        fs::write(Path::new(&path).join("locked"), "").expect("written");
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut holder = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "disk::tests::a_lock_goes_with_its_process"])
        .env(PATH, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started");
    while !folder.path().join("locked").exists() {
        assert!(holder.try_wait().expect("asked").is_none(), "it waits to be killed");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    FolderLock::acquire(folder.path()).expect_err("taken");
    holder.kill().expect("killed");
    holder.wait().expect("ended");
    FolderLock::acquire(folder.path()).expect("free again");
}

#[cfg(unix)]
#[test]
fn a_planted_lock_is_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let victim = folder.path().join("victim");
    std::os::unix::fs::symlink(&victim, folder.path().join(".lock")).expect("a link");
    let error = FolderLock::acquire(folder.path()).expect_err("a link").to_string();
    assert!(error.contains(".lock") && error.contains("remove it"), "{error}");
    assert!(!victim.exists());
}
