//! Lists and objects while they are being written.

use std::borrow::Cow;

use serde::ser::{self, Serialize};

use super::key::{TextOnly, key_text};
use super::{EncodeError, NUMBER, Writer, write_text};
use crate::job::rewrite::{Numbers, rewrite};

/// A list that is being written.
pub(super) struct List<'a> {
    out: &'a mut Vec<u8>,
    length: usize,
    /// What follows the closing bracket.
    after: &'static str,
}

impl<'a> List<'a> {
    pub(super) fn open(out: &'a mut Vec<u8>, after: &'static str) -> Self {
        out.push(b'[');
        Self { out, length: 0, after }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        if self.length > 0 {
            self.out.push(b',');
        }
        self.length += 1;
        value.serialize(Writer { out: self.out }).map_err(|error| error.inside(self.length - 1))
    }

    fn close(self) -> Result<(), EncodeError> {
        self.out.push(b']');
        self.out.extend_from_slice(self.after.as_bytes());
        Ok(())
    }
}

/// An object that is being written: the members lie in `out` in the order in which they came, and are put in order at the end.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    members: Vec<Member>,
    after: &'static str,
    /// It stands for a JSON text, see [`RAW_VALUE`].
    pub(super) verbatim: bool,
}

/// A member: its key, and where `"key":value` ends in the output.
pub(in crate::job) struct Member {
    pub(in crate::job) key: Cow<'static, str>,
    pub(in crate::job) end: usize,
}

impl<'a> Object<'a> {
    pub(super) fn open(out: &'a mut Vec<u8>, after: &'static str) -> Self {
        out.push(b'{');
        let start = out.len();
        Self { out, start, members: Vec::new(), after, verbatim: false }
    }

    fn key(&mut self, key: Cow<'static, str>) {
        write_text(self.out, &key);
        self.out.push(b':');
        self.members.push(Member { key, end: 0 });
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        let result = value.serialize(Writer { out: self.out });
        let end = self.out.len();
        match self.members.last_mut() {
            Some(member) => {
                member.end = end;
                result.map_err(|error| error.inside(&member.key))
            }
            None => result,
        }
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), EncodeError> {
        if !self.verbatim {
            self.key(Cow::Borrowed(key));
            return self.value(value);
        }
        let text = value.serialize(TextOnly)?;
        self.out.truncate(self.start - 1);
        // A number that is a struct now is a plain one when the feature is off, so it is written as that would be.
        let numbers = if key == NUMBER { Numbers::KeepIntegers } else { Numbers::Keep };
        let written = rewrite(text.as_bytes(), numbers).map_err(EncodeError::new)?;
        self.out.extend_from_slice(&written);
        Ok(())
    }

    fn close(self) -> Result<(), EncodeError> {
        if !self.verbatim {
            close_object(self.out, self.start, self.members);
        }
        self.out.extend_from_slice(self.after.as_bytes());
        Ok(())
    }
}

/// Puts the members that lie in `out` from `start` in order, with commas between them and a bracket behind. The last of
/// several members with one key counts.
pub(in crate::job) fn close_object(out: &mut Vec<u8>, start: usize, members: Vec<Member>) {
    if members.len() > 1 {
        let written = out.split_off(start);
        let mut begin = 0;
        let mut ranges = Vec::with_capacity(members.len());
        for member in members {
            let end = member.end - start;
            ranges.push((member.key, begin..end));
            begin = end;
        }
        ranges.sort_by(|(one, _), (other, _)| one.cmp(other));
        let last_of_key =
            |index: usize| ranges.get(index + 1).is_none_or(|(next, _)| *next != ranges[index].0);
        for (_, range) in (0..ranges.len()).filter(|&index| last_of_key(index)).map(|index| &ranges[index]) {
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(&written[range.clone()]);
        }
    }
    out.push(b'}');
}

macro_rules! list_like {
    ($trait:ident, $method:ident) => {
        impl ser::$trait for List<'_> {
            type Ok = ();
            type Error = EncodeError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
                self.element(value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    };
}

list_like!(SerializeSeq, serialize_element);
list_like!(SerializeTuple, serialize_element);
list_like!(SerializeTupleStruct, serialize_field);
list_like!(SerializeTupleVariant, serialize_field);

macro_rules! struct_like {
    ($trait:ident) => {
        impl ser::$trait for Object<'_> {
            type Ok = ();
            type Error = EncodeError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), EncodeError> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.close()
            }
        }
    };
}

struct_like!(SerializeStruct);
struct_like!(SerializeStructVariant);

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        let text = key_text(key)?;
        self.key(Cow::Owned(text));
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        self.value(value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.close()
    }
}
