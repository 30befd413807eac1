//! Files for launchers that fill a grid: a Slurm array, a Kubernetes job, a Ray script, a shell
//! script. Each starts `lstep compare --resume OUT --cell I` or `--worker`, and says how the tables
//! are made; nothing else is known of the launcher.

use crate::worker::Launcher;
use anyhow::{Context, Result};
use lstep::experiments::Cell;
use std::path::Path;

/// The text of a launcher's file.
pub fn text(launcher: Launcher, out: &Path, cells: &[Cell]) -> Result<String> {
    // A job starts anywhere.
    let out = out.canonicalize().with_context(|| format!("cannot find {}", out.display()))?;
    let out = out.to_str().context("the folder's name is no text: choose another")?;
    let memory = cells.iter().map(|cell| cell.memory).max().unwrap_or(0);
    let job = Job { out, cells: cells.len(), megabytes: memory.div_ceil(1 << 20) };
    Ok(match launcher {
        Launcher::Slurm => job.slurm(),
        Launcher::Kubernetes => job.kubernetes(),
        Launcher::Ray => job.ray(),
        Launcher::Shell => job.shell(),
    })
}

/// Text as one word of a shell.
pub fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// What a job has to know of a grid.
struct Job<'a> {
    out: &'a str,
    cells: usize,
    /// What the largest cell takes at its peak, roughly.
    megabytes: u64,
}

impl Job<'_> {
    /// The folder that holds the grid, which has a whole path: `/` is its own.
    fn folder(&self) -> &str {
        Path::new(self.out).parent().and_then(Path::to_str).unwrap_or(self.out)
    }

    fn slurm(&self) -> String {
        let (out, last, megabytes) = (quoted(self.out), self.cells - 1, self.megabytes);
        format!(
            r#"#!/bin/bash
# Fills the grid in {out}, a task for each of its {cells} cells.
#   sbatch --parsable grid.sbatch
# A cell that was killed or requeued goes on where it was saved last. The tables, when all have ended:
#   sbatch --dependency=afterany:JOB --wrap "lstep compare --resume {out} --collect"
#SBATCH --job-name=lstep-grid
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task=1
#SBATCH --mem={megabytes}M
#SBATCH --requeue
#SBATCH --open-mode=append
# SIGTERM comes two minutes before the time limit; lstep finishes its step and saves.
#SBATCH --signal=B:TERM@120
set -eu
exec "${{LSTEP:-lstep}}" --threads "${{SLURM_CPUS_PER_TASK:-1}}" \
  compare --resume {out} --cell "$SLURM_ARRAY_TASK_ID"
"#,
            cells = self.cells
        )
    }

    fn kubernetes(&self) -> String {
        let (out, megabytes) = (json_text(self.out), self.megabytes);
        format!(
            r#"# Fills the grid in {shown}, a pod for each of its {cells} cells.
#   kubectl apply -f grid.yaml
#   kubectl wait --for=condition=complete job/lstep-grid --timeout=-1s
# A pod that was killed or moved is replaced, and its cell goes on where it was saved last.
# Set the image, and the claim of a volume that holds the grid and its events at the same paths as
# where the grid was begun.
apiVersion: batch/v1
kind: Job
metadata:
  name: lstep-grid
spec:
  completionMode: Indexed
  completions: {cells}
  parallelism: {cells}
  backoffLimitPerIndex: 6
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: cell
          image: lstep:0.1.0
          command: ["lstep"]
          args: ["compare", "--resume", {out}, "--cell", "$(JOB_COMPLETION_INDEX)", "--threads", "1"]
          resources:
            requests: {{cpu: "1", memory: "{megabytes}Mi"}}
            limits: {{memory: "{megabytes}Mi"}}
          volumeMounts:
            - name: work
              mountPath: {mount}
      volumes:
        - name: work
          persistentVolumeClaim:
            claimName: lstep
"#,
            shown = quoted(self.out),
            cells = self.cells,
            mount = json_text(self.folder()),
        )
    }

    fn ray(&self) -> String {
        let (out, bytes) = (json_text(self.out), self.megabytes << 20);
        format!(
            r#""""Fills the grid in {shown}, a task for each of its {cells} cells:  python grid.py

The nodes of the cluster see the grid's folder and its events at the same paths. A task whose node
dies is tried again, and its cell goes on where it was saved last.
"""

import os
import subprocess

import ray

GRID = {out}
LSTEP = os.environ.get("LSTEP", "lstep")


@ray.remote(num_cpus=1, memory={bytes}, max_retries=6, retry_exceptions=True)
def train(cell):
    command = [LSTEP, "--threads", "1", "compare", "--resume", GRID, "--cell", str(cell)]
    subprocess.run(command, check=True)


ray.init(address=os.environ.get("RAY_ADDRESS"))
ray.get([train.remote(cell) for cell in range({cells})])
subprocess.run([LSTEP, "compare", "--resume", GRID, "--collect"], check=True)
"#,
            shown = quoted(self.out),
            cells = self.cells
        )
    }

    fn shell(&self) -> String {
        let out = quoted(self.out);
        format!(
            r#"#!/bin/sh
# Fills the grid in {out} ({cells} cells) with WORKERS workers on this machine, then makes its
# tables. Started on other machines that see the same folder, it helps to fill the same grid.
workers="${{WORKERS:-$(nproc)}}"
for worker in $(seq "$workers"); do
  "${{LSTEP:-lstep}}" --threads "${{THREADS:-1}}" compare --resume {out} --worker &
done
wait
exec "${{LSTEP:-lstep}}" compare --resume {out} --collect
"#,
            cells = self.cells
        )
    }
}

/// Text as JSON writes it, which YAML and Python read alike.
fn json_text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_blanks_and_quotes_stays_one_word() {
        assert_eq!(quoted("/data/grid-1"), "/data/grid-1");
        assert_eq!(quoted("/my data/it's"), r"'/my data/it'\''s'");
        let job = Job { out: "/my data/g", cells: 12, megabytes: 300 };
        for text in [job.slurm(), job.shell()] {
            assert!(text.contains("--resume '/my data/g' "), "{text}");
        }
        assert!(job.kubernetes().contains(r#""--resume", "/my data/g""#));
        assert!(job.ray().contains(r#"GRID = "/my data/g""#));
    }

    #[test]
    fn launchers_name_every_cell_once() {
        let job = Job { out: "/g", cells: 12, megabytes: 300 };
        assert!(job.slurm().contains("--array=0-11\n"));
        assert!(job.slurm().contains("--mem=300M\n"));
        assert!(job.kubernetes().contains("completions: 12\n"));
        assert!(job.ray().contains("range(12)"));
    }
}
