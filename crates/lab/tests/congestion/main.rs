//! Controllers and ECN on whole connections: what the path does to marks, very short paths, losses by chance, careful resume.

mod careful_resume;
mod controllers;
mod run;
