//! Reads the text form of a set, of a UUID and of a tag.

use std::fmt;

use super::intervals::Interval;
use super::source::{Source, Tag, Uuid};
use super::{Group, GtidSet, HIGHEST_NUMBER};

/// How much of the text is shown before and after a mistake. Sets can be very long.
const SHOWN: usize = 48;

/// The lengths of the parts of a UUID.
const UUID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// A text that cannot be read. Prints its part around the mistake, with a caret under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidGtidSet {
    what: &'static str,
    excerpt: String,
    caret: usize,
    position: usize,
    expected: &'static str,
}

impl InvalidGtidSet {
    /// How many characters come before the mistake.
    pub fn position(&self) -> usize {
        self.position
    }

    /// What should have been there.
    pub fn expected(&self) -> &str {
        self.expected
    }
}

impl fmt::Display for InvalidGtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the {} cannot be read: expected {} at character {}", self.what, self.expected, self.position + 1)?;
        writeln!(f, "  {}", self.excerpt)?;
        write!(f, "  {:>width$}", "^", width = self.caret + 1)
    }
}

impl std::error::Error for InvalidGtidSet {}

/// Reads a set.
pub(super) fn set(text: &str) -> Result<GtidSet, InvalidGtidSet> {
    let mut reader = Reader { what: "GTID set", text, rest: text };
    let mut groups = Vec::new();
    loop {
        reader.skip_blanks();
        if reader.skip(',') {
            continue;
        }
        if reader.rest.is_empty() {
            return Ok(GtidSet::of_groups(groups));
        }
        reader.group(&mut groups)?;
        if !reader.rest.is_empty() && !reader.rest.starts_with(',') {
            return Err(reader.expected("\":\", \",\" or the end"));
        }
    }
}

/// Reads a UUID and nothing else.
pub(super) fn uuid(text: &str) -> Result<Uuid, InvalidGtidSet> {
    let mut reader = Reader { what: "UUID", text, rest: text };
    let uuid = reader.uuid()?;
    reader.ended(uuid)
}

/// Reads a tag and nothing else.
pub(super) fn tag(text: &str) -> Result<Tag, InvalidGtidSet> {
    let mut reader = Reader { what: "tag", text, rest: text };
    match reader.tag()? {
        Some(tag) => reader.ended(tag),
        None => Err(reader.expected("a letter or \"_\"")),
    }
}

/// What is still to be read. Only ASCII characters are ever taken, so that one byte is one character of what was taken.
struct Reader<'a> {
    what: &'static str,
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Reads a UUID and its items, up to what is none.
    fn group(&mut self, groups: &mut Vec<Group>) -> Result<(), InvalidGtidSet> {
        let mut group = Group { source: self.uuid()?.into(), intervals: Vec::new() };
        self.skip_blanks();
        while self.skip(':') {
            self.skip_blanks();
            if let Some(tag) = self.tag()? {
                let source = Source { uuid: group.source.uuid, tag: Some(tag) };
                groups.push(std::mem::replace(&mut group, Group { source, intervals: Vec::new() }));
            } else {
                group.intervals.push(self.interval()?);
            }
            self.skip_blanks();
        }
        groups.push(group);
        Ok(())
    }

    fn uuid(&mut self) -> Result<Uuid, InvalidGtidSet> {
        let braces = self.skip('{');
        let mut dashes = braces;
        let mut bits = 0_u128;
        for (index, digits) in UUID_PARTS.into_iter().enumerate() {
            if index == 1 {
                dashes |= self.rest.starts_with('-');
            }
            if index > 0 && dashes && !self.skip('-') {
                return Err(self.expected("\"-\" in the UUID"));
            }
            for _ in 0..digits {
                let digit = self.rest.chars().next().and_then(|character| character.to_digit(16));
                let digit = digit.ok_or_else(|| self.expected("a hex digit of a UUID"))?;
                self.take(1);
                bits = bits << 4 | u128::from(digit);
            }
        }
        if braces && !self.skip('}') {
            return Err(self.expected("\"}\" after the UUID"));
        }
        Ok(Uuid::new(bits))
    }

    /// Reads a tag, if one begins here.
    fn tag(&mut self) -> Result<Option<Tag>, InvalidGtidSet> {
        if !self.rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            return Ok(None);
        }
        let length = self.run_of(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if length > Tag::LONGEST {
            self.take(Tag::LONGEST);
            return Err(self.expected("the end of the tag, which has at most 32 characters,"));
        }
        Ok(Some(Tag::of(self.take(length))))
    }

    fn interval(&mut self) -> Result<Interval, InvalidGtidSet> {
        let first = self.number(1, "a number from 1 to 9223372036854775806, or a tag,")?;
        self.skip_blanks();
        if !self.skip('-') {
            return Ok(Interval { first, last: first });
        }
        self.skip_blanks();
        let last = self.number(0, "a number up to 9223372036854775806")?;
        Ok(Interval { first, last })
    }

    /// Reads a decimal number that is not below `lowest`. It may have zeros before it.
    fn number(&mut self, lowest: u64, expected: &'static str) -> Result<u64, InvalidGtidSet> {
        let digits = self.rest.get(..self.run_of(|byte| byte.is_ascii_digit())).unwrap_or_default();
        match digits.parse() {
            Ok(number) if (lowest..=HIGHEST_NUMBER).contains(&number) => {
                self.take(digits.len());
                Ok(number)
            }
            _ => Err(self.expected(expected)),
        }
    }

    /// How many of the next bytes are of this kind.
    fn run_of(&self, kind: impl Fn(u8) -> bool) -> usize {
        self.rest.bytes().take_while(|byte| kind(*byte)).count()
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    }

    /// Takes this sign, if it is next.
    fn skip(&mut self, sign: char) -> bool {
        let after = self.rest.strip_prefix(sign);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Gives what was read, if nothing follows.
    fn ended<T>(&self, read: T) -> Result<T, InvalidGtidSet> {
        if self.rest.is_empty() { Ok(read) } else { Err(self.expected("the end")) }
    }

    /// The mistake of having anything but `expected` next.
    fn expected(&self, expected: &'static str) -> InvalidGtidSet {
        let taken = self.text.strip_suffix(self.rest).unwrap_or_default();
        let before = taken.get(taken.len().saturating_sub(SHOWN)..).unwrap_or(taken);
        let (left, right) =
            (if before.len() < taken.len() { "..." } else { "" }, self.rest.chars().nth(SHOWN).map_or("", |_| "..."));
        let after = self.rest.chars().take(SHOWN);
        // Line ends would carry the caret away from its place.
        let shown = before.chars().chain(after).map(|character| if character.is_control() { ' ' } else { character });
        InvalidGtidSet {
            what: self.what,
            excerpt: format!("{left}{}{right}", shown.collect::<String>()),
            caret: left.len() + before.len(),
            position: taken.len(),
            expected,
        }
    }
}
