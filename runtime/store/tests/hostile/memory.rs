//! What a file makes a reader allocate is a small multiple of the file.
