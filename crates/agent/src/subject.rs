//! The common name in the subject of a certificate. Pure.
//!
//! It reads DER of certificates whose signature was verified before; still, whatever it does not understand is no name.

/// The encoding of the attribute `commonName`, 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// UTF-8, printable and IA5 strings: all of them show ASCII as ASCII.
const STRINGS: [u8; 3] = [0x0c, 0x13, 0x16];

/// The one common name of a subject, which is given without its outer sequence. Two are as good as none.
pub(crate) fn common_name(subject: &[u8]) -> Option<String> {
    let mut found = None;
    let mut rest = subject;
    while !rest.is_empty() {
        let mut attributes = take(&mut rest, SET)?;
        while !attributes.is_empty() {
            let mut attribute = take(&mut attributes, SEQUENCE)?;
            if take(&mut attribute, OBJECT_IDENTIFIER)? != COMMON_NAME {
                continue;
            }
            let tag = *attribute.first()?;
            let value = STRINGS.contains(&tag).then(|| take(&mut attribute, tag)).flatten()?;
            let name = String::from_utf8(value.to_vec()).ok()?;
            if found.replace(name).is_some() {
                return None;
            }
        }
    }
    found
}

/// Takes one element with this tag off the front, and returns what is in it.
fn take<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&found, after) = rest.split_first()?;
    let (&first, after) = after.split_first()?;
    let (length, after) = match first {
        short if short < 0x80 => (usize::from(short), after),
        0x81 => after.split_first().map(|(&length, after)| (usize::from(length), after))?,
        0x82 => {
            let (length, after) = after.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), after)
        }
        // No name is as long.
        _ => return None,
    };
    let (content, after) = after.split_at_checked(length)?;
    *rest = after;
    (found == tag).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut parameters = CertificateParams::new(vec![]).unwrap();
        parameters.distinguished_name = DistinguishedName::new();
        for (kind, name) in names {
            parameters.distinguished_name.push(kind.clone(), DnValue::Utf8String((*name).to_owned()));
        }
        parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn read(certificate: &[u8]) -> Option<String> {
        let certificate = rustls::pki_types::CertificateDer::from(certificate.to_vec());
        common_name(webpki::EndEntityCert::try_from(&certificate).unwrap().subject())
    }

    #[test]
    fn the_common_name_is_found_among_others() {
        let long = "x".repeat(300);
        let names = [(DnType::OrganizationName, long.as_str()), (DnType::CommonName, "moco-controller")];
        assert_eq!(read(&certificate(&names)).as_deref(), Some("moco-controller"));
        assert_eq!(read(&certificate(&[(DnType::OrganizationName, "moco-controller")])), None);
        assert_eq!(read(&certificate(&[])), None);
    }

    #[test]
    fn two_names_are_none() {
        let one = [0x31, 0x0a, 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, b'a'];
        assert_eq!(common_name(&one).as_deref(), Some("a"));
        assert_eq!(common_name(&[one, one].concat()), None);
    }

    #[test]
    fn no_cut_or_changed_byte_makes_it_fail_loudly() {
        let whole = [0x31, 0x0a, 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, b'a'];
        for at in 0..whole.len() {
            assert_eq!(common_name(&whole[..at]), None, "cut at {at}");
            for byte in 0..=255 {
                let mut changed = whole;
                changed[at] = byte;
                let _whatever = common_name(&changed);
            }
        }
    }
}
