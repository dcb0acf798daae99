//! Sockets that share a port, one for each worker of a server, and which of them gets a datagram.
//!
//! The kernel spreads datagrams over such sockets by the addresses they come from (socket(7), `SO_REUSEPORT`). A program of a few
//! [`Instruction`]s can choose by what is in them instead, so that who has moved to another address stays with its socket.

use std::io;
use std::net::SocketAddr;

use crate::open::open;
use crate::socket::UdpSocket;

/// A step of a program that chooses the socket for a datagram: classic BPF, which works with one register, an index and the
/// bytes of the datagram's payload. Reading beyond its end ends the program with the first socket as the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// The register becomes the byte at this offset.
    Load(u32),
    /// The register becomes the byte at this offset behind the index.
    LoadIndexed(u32),
    /// The index becomes what is in the register.
    SetIndex,
    /// The register is exclusive-or'ed with the index.
    XorIndex,
    /// These bits of the register remain.
    And(u32),
    /// The register becomes the remainder of the division by this number.
    Modulo(u32),
    /// As many instructions are left out if one of the bits is set in the register.
    SkipIfSet {
        /// The bits.
        bits: u32,
        /// How many instructions.
        count: u8,
    },
    /// As many instructions are left out.
    Skip(u32),
    /// The register is the number of the socket, in the order in which they were bound.
    Choose,
}

impl UdpSocket {
    /// Binds `count` sockets to one address, with what [`UdpSocket::bind`] does to one. With port 0 they get the same one that is
    /// free. Each is for [`UdpSocket::from_std`] in the runtime in which it is to be used.
    ///
    /// # Errors
    /// Those of the operating system: also that the address is in use, be it by sockets that would share it. `Unsupported` for
    /// more than one socket where the system has no such groups.
    pub fn bind_group(addr: SocketAddr, count: usize) -> io::Result<Vec<std::net::UdpSocket>> {
        // Alone at first: who starts a server twice is to be told, and not to get half of the clients.
        let alone = open(addr, |_| Ok(()))?;
        if count <= 1 {
            return Ok(vec![alone]);
        }
        let addr = alone.local_addr()?;
        drop(alone);
        (0..count).map(|_| open(addr, share_port)).collect()
    }

    /// Lets `program` choose among the sockets that share this one's port, for every datagram to any of them. Only Linux can.
    ///
    /// # Errors
    /// Those of the operating system, `Unsupported` on others than Linux.
    pub fn steer(&self, program: &[Instruction]) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return linux::attach(self.io.socket(), program);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = program;
            Err(io::Error::new(io::ErrorKind::Unsupported, "choosing among sockets is for Linux"))
        }
    }
}

#[cfg(unix)]
fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(unix))]
fn share_port(_: &socket2::Socket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "sockets cannot share a port on this system"))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::size_of;
    use std::os::fd::AsRawFd;

    use super::Instruction;

    /// Attaches the program to the group of a socket.
    #[expect(unsafe_code, reason = "no library at hand sets this option")]
    pub(super) fn attach(socket: &std::net::UdpSocket, program: &[Instruction]) -> io::Result<()> {
        let mut filter: Vec<libc::sock_filter> = program.iter().map(encode).collect();
        let len = u16::try_from(filter.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
        // SAFETY: the descriptor is open as long as `socket` is borrowed; the option takes a `sock_fprog` of this size, which
        // points to `len` instructions that live until the call has returned. The kernel copies and checks them.
        let status = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_REUSEPORT_CBPF,
                (&raw const program).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// An instruction as the kernel knows it (`linux/filter.h`).
    fn encode(instruction: &Instruction) -> libc::sock_filter {
        let (code, jt, k) = match *instruction {
            Instruction::Load(offset) => (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, offset),
            Instruction::LoadIndexed(offset) => (libc::BPF_LD | libc::BPF_B | libc::BPF_IND, 0, offset),
            Instruction::SetIndex => (libc::BPF_MISC | libc::BPF_TAX, 0, 0),
            Instruction::XorIndex => (libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X, 0, 0),
            Instruction::And(bits) => (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, bits),
            Instruction::Modulo(divisor) => (libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, 0, divisor),
            Instruction::SkipIfSet { bits, count } => {
                (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, count, bits)
            }
            Instruction::Skip(count) => (libc::BPF_JMP | libc::BPF_JA, 0, count),
            Instruction::Choose => (libc::BPF_RET | libc::BPF_A, 0, 0),
        };
        libc::sock_filter { code: code as u16, jt, jf: 0, k }
    }
}

#[cfg(test)]
mod tests;
