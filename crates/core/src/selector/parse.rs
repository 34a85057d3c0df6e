//! Reads the text form of a selector. Positions are counted in characters, for the caret.

use std::collections::BTreeSet;
use std::fmt;

use super::requirement::{Requirement, Test};
use crate::labels::{Flaw, check_key, check_value};

/// A selector that cannot be read. Prints the input with a caret under the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSelector {
    input: String,
    position: usize,
    expected: String,
}

impl InvalidSelector {
    /// How many characters come before the mistake.
    pub fn position(&self) -> usize {
        self.position
    }

    /// What should have been there.
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for InvalidSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tabs and line ends would carry the caret away from its place.
        let line: String = self.input.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
        writeln!(f, "the label selector cannot be read: expected {}", self.expected)?;
        writeln!(f, "  {line}")?;
        write!(f, "  {:>width$}", "^", width = self.position + 1)
    }
}

impl std::error::Error for InvalidSelector {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Word,
    Comma,
    Open,
    Close,
    Not,
    Equals,
    NotEquals,
    Above,
    Below,
    End,
}

#[derive(Clone, Debug)]
struct Token {
    sign: Sign,
    position: usize,
    text: String,
}

/// What a selector may contain beside words. Longer signs come first.
const SIGNS: [(&str, Sign); 9] = [
    ("==", Sign::Equals),
    ("!=", Sign::NotEquals),
    ("=", Sign::Equals),
    ("!", Sign::Not),
    (",", Sign::Comma),
    ("(", Sign::Open),
    (")", Sign::Close),
    (">", Sign::Above),
    ("<", Sign::Below),
];

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Splits the input into tokens. It cannot fail: what is no sign and no blank is part of a word,
/// and words are judged where they are used.
fn tokens(input: &str) -> Vec<Token> {
    let ends_word = |character: char| BLANKS.contains(&character) || "=!,()><".contains(character);
    let mut tokens = Vec::new();
    let mut rest = input;
    let mut position = 0;
    loop {
        let trimmed = rest.trim_start_matches(BLANKS);
        // Blanks are one byte each, so bytes are characters here.
        position += rest.len() - trimmed.len();
        rest = trimmed;
        let (sign, length) = if rest.is_empty() {
            (Sign::End, 0)
        } else if let Some((text, sign)) = SIGNS.iter().find(|(text, _)| rest.starts_with(text)) {
            (*sign, text.len())
        } else {
            (Sign::Word, rest.find(ends_word).unwrap_or(rest.len()))
        };
        let (text, remaining) = rest.split_at(length);
        tokens.push(Token { sign, position, text: text.to_owned() });
        if sign == Sign::End {
            return tokens;
        }
        position += text.chars().count();
        rest = remaining;
    }
}

/// Reads a selector.
pub(super) fn parse(input: &str) -> Result<Vec<Requirement>, InvalidSelector> {
    let mut reader = Reader { input, tokens: tokens(input).into_iter().peekable() };
    let mut requirements = Vec::new();
    if reader.sign() == Sign::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(reader.requirement()?);
        match reader.sign() {
            Sign::End => return Ok(requirements),
            Sign::Comma => {
                reader.next();
            }
            _ => return Err(reader.expected("\",\" or the end")),
        }
    }
}

struct Reader<'a> {
    input: &'a str,
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
}

impl Reader<'_> {
    /// The kind of the next token.
    fn sign(&mut self) -> Sign {
        self.tokens.peek().map_or(Sign::End, |token| token.sign)
    }

    /// Takes the next token.
    fn next(&mut self) -> Token {
        self.tokens.next().unwrap_or_else(|| Token {
            sign: Sign::End,
            position: self.input.chars().count(),
            text: String::new(),
        })
    }

    /// The mistake of having anything but `expected` next.
    fn expected(&mut self, expected: &str) -> InvalidSelector {
        let position = self.next().position;
        self.mistake(position, expected)
    }

    fn mistake(&self, position: usize, expected: impl Into<String>) -> InvalidSelector {
        InvalidSelector { input: self.input.to_owned(), position, expected: expected.into() }
    }

    fn requirement(&mut self) -> Result<Requirement, InvalidSelector> {
        let negated = self.sign() == Sign::Not;
        if negated {
            self.next();
        }
        if self.sign() != Sign::Word {
            return Err(self.expected(if negated {
                "a label key after \"!\""
            } else {
                "a label key, or \"!\" and a label key"
            }));
        }
        let token = self.next();
        check_key(&token.text).map_err(|flaw| self.flawed(&token, &flaw, "in the label key"))?;
        let key = token.text;
        let test = if negated { Test::Absent } else { self.test(&key)? };
        Ok(Requirement { key, test })
    }

    /// Reads what follows a key.
    fn test(&mut self, key: &str) -> Result<Test, InvalidSelector> {
        match self.sign() {
            Sign::End | Sign::Comma => Ok(Test::Exists),
            Sign::Equals => self.value().map(Test::Equals),
            Sign::NotEquals => self.value().map(Test::Differs),
            Sign::Above => self.number().map(Test::Above),
            Sign::Below => self.number().map(Test::Below),
            Sign::Word => {
                let operator = self.next();
                match operator.text.as_str() {
                    "in" => self.values("in").map(Test::In),
                    "notin" => self.values("notin").map(Test::NotIn),
                    _ => Err(self.mistake(operator.position, operators(key))),
                }
            }
            Sign::Open | Sign::Close | Sign::Not => Err(self.expected(&operators(key))),
        }
    }

    /// Takes an operator and reads its one value, which may be empty.
    fn value(&mut self) -> Result<String, InvalidSelector> {
        let operator = self.next();
        match self.sign() {
            Sign::End | Sign::Comma => Ok(String::new()),
            Sign::Word => self.word(),
            _ => Err(self.expected(&format!("a label value, \",\" or the end after {:?}", operator.text))),
        }
    }

    /// Takes an operator and reads its number.
    fn number(&mut self) -> Result<i64, InvalidSelector> {
        let operator = self.next();
        let token = self.next();
        let expected = || format!("a whole number after {:?}", operator.text);
        if token.sign != Sign::Word {
            return Err(self.mistake(token.position, expected()));
        }
        // A sign before the number would be no valid label value, so the API server refuses it.
        check_value(&token.text)
            .ok()
            .and_then(|()| token.text.parse().ok())
            .ok_or_else(|| self.mistake(token.position, expected()))
    }

    /// Reads a list of values between parentheses. Where a value is left out, the empty value stands.
    fn values(&mut self, operator: &str) -> Result<BTreeSet<String>, InvalidSelector> {
        if self.sign() != Sign::Open {
            return Err(self.expected(&format!("\"(\" after {operator:?}")));
        }
        self.next();
        let mut values = BTreeSet::new();
        loop {
            match self.sign() {
                Sign::Word => values.insert(self.word()?),
                Sign::Comma | Sign::Close => values.insert(String::new()),
                _ => return Err(self.expected("a label value, \",\" or \")\"")),
            };
            match self.sign() {
                Sign::Comma => {
                    self.next();
                }
                Sign::Close => {
                    self.next();
                    return Ok(values);
                }
                _ => return Err(self.expected("\",\" or \")\"")),
            }
        }
    }

    /// Takes a word that must be a label value.
    fn word(&mut self) -> Result<String, InvalidSelector> {
        let token = self.next();
        check_value(&token.text).map_err(|flaw| self.flawed(&token, &flaw, "in the label value"))?;
        Ok(token.text)
    }

    fn flawed(&self, token: &Token, flaw: &Flaw, place: &str) -> InvalidSelector {
        self.mistake(token.position + flaw.offset, format!("{} {place}", flaw.expected))
    }
}

fn operators(key: &str) -> String {
    format!("one of \"=\", \"==\", \"!=\", \"in\", \"notin\", \">\", \"<\", \",\" or the end after the label key {key:?}")
}
