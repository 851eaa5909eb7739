//! Socket addresses: name resolution through the C library, and the form the system calls take.

use std::ffi::{CStr, CString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// A `sockaddr` of either family and its length.
pub struct Raw {
    pub storage: libc::sockaddr_storage,
    pub len: libc::socklen_t,
}

impl Raw {
    /// Room for an address the kernel fills in.
    #[must_use]
    pub fn room() -> Raw {
        // SAFETY: all zeroes is a valid `sockaddr_storage`.
        let storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Raw { storage, len: size::<libc::sockaddr_storage>() }
    }

    #[must_use]
    pub fn of(addr: &SocketAddr) -> Raw {
        let mut raw = Raw::room();
        match addr {
            SocketAddr::V4(a) => {
                // SAFETY: the storage is large and aligned enough for every address type.
                let s = unsafe { &mut *(&raw mut raw.storage).cast::<libc::sockaddr_in>() };
                s.sin_family = libc::AF_INET as libc::sa_family_t;
                s.sin_port = a.port().to_be();
                s.sin_addr.s_addr = u32::from_ne_bytes(a.ip().octets());
                raw.len = size::<libc::sockaddr_in>();
            }
            SocketAddr::V6(a) => {
                // SAFETY: as above.
                let s = unsafe { &mut *(&raw mut raw.storage).cast::<libc::sockaddr_in6>() };
                s.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                s.sin6_port = a.port().to_be();
                s.sin6_addr.s6_addr = a.ip().octets();
                s.sin6_scope_id = a.scope_id();
                raw.len = size::<libc::sockaddr_in6>();
            }
        }
        raw
    }

    #[must_use]
    pub fn ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    #[must_use]
    pub fn family(&self) -> i32 {
        i32::from(self.storage.ss_family)
    }

    /// The internet address, `None` for other families.
    #[must_use]
    pub fn addr(&self) -> Option<SocketAddr> {
        match self.family() {
            libc::AF_INET => {
                // SAFETY: the family says which type the storage holds.
                let s = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(s.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(s.sin_port)))
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let s = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(s.sin6_addr.s6_addr);
                Some(SocketAddr::V6(SocketAddrV6::new(ip, u16::from_be(s.sin6_port), 0, s.sin6_scope_id)))
            }
            _ => None,
        }
    }
}

fn size<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(std::mem::size_of::<T>()).unwrap_or(0)
}

/// A numeric host needs no resolver.
#[must_use]
pub fn numeric(host: &str, port: u16) -> Option<SocketAddr> {
    host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port))
}

/// All addresses of a host, in the resolver's order; blocks. The error is the resolver's text.
pub fn resolve(host: &[u8], port: u16) -> Result<Vec<SocketAddr>, String> {
    let Ok(name) = CString::new(host) else { return Err("Name or service not known".into()) };
    // SAFETY: zeroed hints are valid.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut list: *mut libc::addrinfo = std::ptr::null_mut();
    // SAFETY: valid name, hints and result pointer.
    let rc = unsafe { libc::getaddrinfo(name.as_ptr(), std::ptr::null(), &raw const hints, &raw mut list) };
    if rc != 0 {
        // SAFETY: the library's texts are static and terminated.
        return Err(unsafe { CStr::from_ptr(libc::gai_strerror(rc)) }.to_string_lossy().into_owned());
    }
    let mut out = Vec::new();
    let mut at = list;
    while !at.is_null() {
        // SAFETY: nodes and their addresses live until `freeaddrinfo`; the length bounds the copy.
        unsafe {
            let mut raw = Raw::room();
            let len = ((*at).ai_addrlen as usize).min(std::mem::size_of::<libc::sockaddr_storage>());
            std::ptr::copy_nonoverlapping((*at).ai_addr.cast::<u8>(), (&raw mut raw.storage).cast::<u8>(), len);
            if let Some(mut a) = raw.addr() {
                a.set_port(port);
                out.push(a);
            }
            at = (*at).ai_next;
        }
    }
    // SAFETY: the list came from `getaddrinfo`.
    unsafe { libc::freeaddrinfo(list) };
    if out.is_empty() { Err("Name or service not known".into()) } else { Ok(out) }
}
