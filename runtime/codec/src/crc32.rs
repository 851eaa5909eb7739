//! CRC-32 of zlib and gzip: reflected polynomial 0xEDB88320, slicing by 16.

const SLICES: usize = 16;

/// `TABLES[k][b]`: the checksum of byte `b` followed by `k` zero bytes.
static TABLES: [[u32; 256]; SLICES] = tables();

const fn tables() -> [[u32; 256]; SLICES] {
    let mut t = [[0u32; 256]; SLICES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        t[0][byte] = crc;
        byte += 1;
    }
    let mut slice = 1;
    while slice < SLICES {
        let mut byte = 0;
        while byte < 256 {
            let before = t[slice - 1][byte];
            t[slice][byte] = (before >> 8) ^ t[0][(before & 0xff) as usize];
            byte += 1;
        }
        slice += 1;
    }
    t
}

/// The checksum of all bytes so far, `crc` being that of the bytes before `data` (0 at the start).
#[must_use]
pub fn update(crc: u32, data: &[u8]) -> u32 {
    let mut crc = !crc;
    let mut blocks = data.chunks_exact(SLICES);
    for block in &mut blocks {
        let first = crc.to_le_bytes();
        let mut next = 0;
        for (i, &byte) in block.iter().enumerate() {
            let byte = if i < 4 { byte ^ first[i] } else { byte };
            next ^= TABLES[SLICES - 1 - i][usize::from(byte)];
        }
        crc = next;
    }
    for &byte in blocks.remainder() {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::update;

    #[test]
    fn check_value() {
        assert_eq!(update(0, b"123456789"), 0xCBF4_3926);
        assert_eq!(update(0, b""), 0);
    }

    #[test]
    fn splits_agree_with_bitwise() {
        let data: Vec<u8> = (0..500u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let bitwise = |bytes: &[u8]| {
            let mut crc = !0u32;
            for &b in bytes {
                crc ^= u32::from(b);
                for _ in 0..8 {
                    crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
                }
            }
            !crc
        };
        for n in 0..data.len() {
            assert_eq!(update(0, &data[..n]), bitwise(&data[..n]));
            assert_eq!(update(update(0, &data[..n]), &data[n..]), bitwise(&data));
        }
    }
}
