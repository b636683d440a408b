//! Strings and numbers in Go's form.

/// Appends a string in quotes. `text` need not be UTF-8: what is not becomes `\ufffd`.
pub(in crate::job) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    if let Ok(text) = std::str::from_utf8(text) {
        return write_text(out, text);
    }
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        write_escaped(out, chunk.valid());
        for _ in chunk.invalid() {
            out.extend_from_slice(br"\ufffd");
        }
    }
    out.push(b'"');
}

/// Appends a text in quotes.
pub(in crate::job) fn write_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Bytes that a string can't hold as they are, or not always: nearly no string has any.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special[b'<' as usize] = true;
    special[b'>' as usize] = true;
    special[b'&' as usize] = true;
    // The first byte of U+2028 and U+2029, which end lines in JavaScript.
    special[0xe2] = true;
    special
};

fn write_escaped(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| SPECIAL[usize::from(byte)]) {
        out.extend_from_slice(&rest[..at]);
        let byte = rest[at];
        let (escape, length): (&[u8], usize) = match byte {
            b'"' => (b"\\\"", 1),
            b'\\' => (b"\\\\", 1),
            b'\n' => (b"\\n", 1),
            b'\r' => (b"\\r", 1),
            b'\t' => (b"\\t", 1),
            0x08 => (b"\\b", 1),
            0x0c => (b"\\f", 1),
            0xe2 => match &rest[at..at + 3] {
                [_, 0x80, 0xa8] => (b"\\u2028", 3),
                [_, 0x80, 0xa9] => (b"\\u2029", 3),
                _ => (&[0xe2], 1),
            },
            _ => (&[b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]], 1),
        };
        out.extend_from_slice(escape);
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
}

/// Appends a finite float: the shortest digits that read back the same; an exponent below 1e-6 and from 1e21.
pub(in crate::job) fn write_f64(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    let exponent = size != 0.0 && !(1e-6..1e21).contains(&size);
    write_float(out, exponent, format_args!("{value}"), format_args!("{value:e}"));
}

pub(super) fn write_f32(out: &mut Vec<u8>, value: f32) {
    let size = value.abs();
    let exponent = size != 0.0 && !(1e-6..1e21).contains(&size);
    write_float(out, exponent, format_args!("{value}"), format_args!("{value:e}"));
}

fn write_float(
    out: &mut Vec<u8>,
    exponent: bool,
    plain: std::fmt::Arguments<'_>,
    with_e: std::fmt::Arguments<'_>,
) {
    if !exponent {
        out.extend_from_slice(plain.to_string().as_bytes());
        return;
    }
    // Rust writes 1e21 and 1e-7; Go writes a sign always.
    let text = with_e.to_string();
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => {
            out.extend_from_slice(format!("{digits}e+{power}").as_bytes());
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
}
