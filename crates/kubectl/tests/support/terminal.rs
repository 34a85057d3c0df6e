//! A pseudo-terminal.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::process::{Child, Command};

use super::{LONG, wait_for};

/// A program that believes to talk to a person.
pub struct Terminal {
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts a program on a terminal of 160 columns.
    pub fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open =
            || -> OwnedFd { rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap() };
        command.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = command.spawn().unwrap();
        // The command keeps its ends of the terminal; as long as one is open, reading does not end.
        drop(command);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut master = File::from(master);
            let mut buffer = [0; 4096];
            // Linux tells the end of a terminal by an error.
            while let Ok(count @ 1..) = master.read(&mut buffer) {
                seen.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, shown }
    }

    /// All that was written so far, with every sequence of control characters.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// What a person sees now.
    pub fn screen(&self) -> String {
        Screen::after(&self.written()).lines.join("\n")
    }

    /// Waits until a person sees this.
    pub async fn wait_until_seen(&self, text: &str) -> String {
        wait_for(&format!("{text:?} on the screen"), || Some(self.screen()).filter(|screen| screen.contains(text))).await
    }

    /// Waits until a person sees this and nothing of what was there before: between the two, a screen may be half drawn.
    pub async fn wait_until_replaced(&self, before: &str, text: &str) -> String {
        let is_new = |screen: &String| screen.contains(text) && !screen.contains(before);
        wait_for(&format!("{text:?} instead of {before:?} on the screen"), || Some(self.screen()).filter(is_new)).await
    }

    /// Waits until the program ends, and returns its exit code and all that was written.
    pub async fn end(mut self) -> (i32, String) {
        let status = tokio::time::timeout(LONG, self.child.wait()).await.expect("the program hangs").unwrap();
        // The reader has read everything when it lets go of its share.
        wait_for("the end of the terminal", || (Arc::strong_count(&self.shown) == 1).then_some(())).await;
        (status.code().unwrap_or(-1), self.written())
    }
}

/// As much of a terminal as the program uses: lines, cursor up, clearing. Anything else is a mistake.
#[derive(Default)]
pub struct Screen {
    pub lines: Vec<String>,
    row: usize,
    column: usize,
}

impl Screen {
    pub fn after(text: &str) -> Self {
        let mut screen = Self::default();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\n' => screen.row += 1,
                '\r' => screen.column = 0,
                '\x1b' => {
                    assert_eq!(letters.next(), Some('['), "an unknown sequence in {text:?}");
                    let mut number = String::new();
                    // A sequence whose end was not read yet comes to nothing.
                    for letter in letters.by_ref() {
                        if letter.is_ascii_alphabetic() {
                            screen.obey(letter, number.parse().unwrap_or(0));
                            break;
                        }
                        number.push(letter);
                    }
                }
                letter => screen.put(letter),
            }
        }
        screen
    }

    fn line(&mut self) -> &mut String {
        while self.lines.len() <= self.row {
            self.lines.push(String::new());
        }
        &mut self.lines[self.row]
    }

    fn put(&mut self, letter: char) {
        let column = self.column;
        let line = self.line();
        let mut letters: Vec<char> = line.chars().collect();
        while letters.len() <= column {
            letters.push(' ');
        }
        letters[column] = letter;
        *line = letters.into_iter().collect();
        self.column += 1;
    }

    fn obey(&mut self, command: char, number: usize) {
        match command {
            'm' => {}
            'A' => self.row = self.row.checked_sub(number.max(1)).expect("above the first line"),
            'K' => {
                let column = self.column;
                let line = self.line();
                *line = line.chars().take(column).collect();
            }
            'J' => {
                let column = self.column;
                let line = self.line();
                *line = line.chars().take(column).collect();
                let rows = self.row + 1;
                self.lines.truncate(rows);
            }
            other => panic!("the program sends ESC [ {other}"),
        }
    }
}
