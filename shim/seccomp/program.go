package seccomp

// A Config says what the filter takes away.
type Config struct {
	// Sockets says which sockets can be made. All but AnySockets also forbid the
	// ioctls by which a device reaches a network.
	Sockets Sockets
	// NoUnixSockets forbids socket(AF_UNIX), and socketpair for datagrams;
	// other pairs stay.
	NoUnixSockets bool
	// NoTerminalInput forbids the ioctls that put input into a terminal.
	NoTerminalInput bool
	// NoKeyrings forbids the system calls on the kernel's keyrings, of which one
	// starts a program outside (request_key(2)).
	NoKeyrings bool
	// NoFileIoctls forbids the ioctls that reach beyond a descriptor's own file.
	NoFileIoctls bool
	// NoLimitsOfOthers forbids to set the resource limits of a process by its number,
	// and the priority of a process group or of a user.
	NoLimitsOfOthers bool
	// Mark, unless it is 0, answers [Marked], and [Prove] for this number.
	Mark uint32
}

// Sockets says which address families a process can make sockets of. In all
// but AnySockets, AF_UNIX and the route protocol of AF_NETLINK stay: Node,
// asyncio, cargo and name lookups of "localhost" need them.
type Sockets uint8

const (
	// AnySockets leaves sockets alone.
	AnySockets Sockets = iota
	// LocalSockets forbids all that reach a network.
	LocalSockets
	// TCPSockets also allows TCP, whose ports Landlock checks.
	TCPSockets
	// TCPAndUDPSockets also allows UDP.
	TCPAndUDPSockets
)

// Empty reports whether there is nothing to filter.
func (c Config) Empty() bool { return c.wants() == 0 }

// wants is a Config as the tables below speak of it.
type wants uint16

const (
	noNetwork wants = 1 << iota // all but AnySockets
	noTCP
	noUDP
	ports // what Landlock checks is allowed
	udp
	noUnix
	noRing // nor a 32-bit program: both make sockets where a filter cannot see
	noInput
	noKeyrings
	noFiles
	noLimits
	marked
)

func (c Config) wants() (w wants) {
	for _, x := range [...]struct {
		set   bool
		wants wants
	}{
		{c.Sockets != AnySockets, noNetwork | noRing},
		{c.Sockets == LocalSockets, noTCP},
		{c.Sockets == LocalSockets || c.Sockets == TCPSockets, noUDP},
		{c.Sockets >= TCPSockets, ports},
		{c.Sockets >= TCPAndUDPSockets, udp},
		{c.NoUnixSockets, noUnix | noRing},
		{c.NoTerminalInput, noInput},
		{c.NoKeyrings, noKeyrings},
		{c.NoFileIoctls, noFiles},
		{c.NoLimitsOfOthers, noLimits},
		{c.Mark != 0, marked},
	} {
		if x.set {
			w |= x.wants
		}
	}
	return w
}
