//! The typed Go values of the golden vectors, as serde sees them.

use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A value as the vectors describe it: `{"t": "int64", "v": "5"}`.
pub(crate) struct GoValue<'a>(pub(crate) &'a Value);

impl GoValue<'_> {
    fn number<T: std::str::FromStr>(&self) -> T {
        self.0["v"].as_str().unwrap().parse().unwrap_or_else(|_| panic!("{}", self.0))
    }

    fn string(&self) -> String {
        match self.0.get("hex") {
            Some(hex) => go_lossy(&hex_decode(hex.as_str().unwrap())),
            None => self.0["v"].as_str().unwrap().to_owned(),
        }
    }
}

impl Serialize for GoValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0["t"].as_str().unwrap() {
            "nil" => serializer.serialize_unit(),
            "map" if self.0.get("nil").is_some() => serializer.serialize_none(),
            "map" => {
                let entries = self.0["entries"].as_array().unwrap();
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for entry in entries {
                    map.serialize_entry(&GoValue(&entry[0]), &GoValue(&entry[1]))?;
                }
                map.end()
            }
            "slice" => {
                let items = self.0["v"].as_array().unwrap();
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&GoValue(item))?;
                }
                list.end()
            }
            "string" => serializer.serialize_str(&self.string()),
            "bool" => serializer.serialize_bool(self.0["v"].as_bool().unwrap()),
            "int" | "int64" => serializer.serialize_i64(self.number()),
            "int8" => serializer.serialize_i8(self.number()),
            "uint8" => serializer.serialize_u8(self.number()),
            "uint64" => serializer.serialize_u64(self.number()),
            "float64" => serializer.serialize_f64(f64::from_bits(self.bits())),
            "float32" => serializer.serialize_f32(f32::from_bits(u32::try_from(self.bits()).unwrap())),
            "[]byte" => {
                serializer.serialize_str(&base64_encode(&hex_decode(self.0["hex"].as_str().unwrap())))
            }
            "json.Number" | "json.RawMessage" => {
                let text = self.0["v"].as_str().unwrap().to_owned();
                RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
            }
            "*work.labStruct" => Struct { b: "", a: Some(5), c: None }.serialize(serializer),
            "work.labStruct" => Struct { b: "x", a: None, c: None }.serialize(serializer),
            "chan int" => Err(S::Error::custom("a channel")),
            other => panic!("unknown Go type {other}"),
        }
    }
}

impl GoValue<'_> {
    fn bits(&self) -> u64 {
        u64::from_str_radix(self.0["bits"].as_str().unwrap(), 16).unwrap()
    }
}

#[derive(serde::Serialize)]
struct Struct {
    b: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<i64>,
    c: Option<i64>,
}

/// One U+FFFD for each byte that is not UTF-8, as Go has it.
fn go_lossy(bytes: &[u8]) -> String {
    bytes
        .utf8_chunks()
        .map(|chunk| chunk.valid().to_owned() + &"\u{fffd}".repeat(chunk.invalid().len()))
        .collect()
}

fn hex_decode(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut block = [0u8; 3];
        block[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, block[0], block[1], block[2]]);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    text
}

pub(crate) fn base64_decode(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .bytes()
        .filter(|digit| *digit != b'=')
        .map(|digit| u32::try_from(DIGITS.iter().position(|other| *other == digit).unwrap()).unwrap())
        .collect();
    let mut bytes = Vec::new();
    for chunk in digits.chunks(4) {
        let bits = chunk.iter().enumerate().fold(0, |bits, (place, digit)| bits | digit << (18 - 6 * place));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    bytes
}
