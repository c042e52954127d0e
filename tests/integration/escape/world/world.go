// Package world says what the attempts of the escape tests find around them.
package world

// A World is one directory with what is hidden, writable and outside in it, and
// a process outside.
//
//	hidden/       the hidden directory: key, spare-…, script, program, sub/, link, fifo, socket
//	above/hidden/ another one, in a directory that holds nothing else
//	linked        a hidden file, whose other name is work/other-name
//	work/         the workspace: file, dir/, key-link, hidden-link, other-name
//	outside/      neither hidden nor writable in scope workspace: file, spare-…, dir/, sub/
//	program       the program of the attempts; setuid and filecaps are copies with privileges
type World struct {
	Dir string
	// Secret is the text of hidden/key, and in the memory of the process outside.
	Secret string
	// UID is who makes the attempts; Other is a user with a process outside
	// that he may change.
	UID, Other int
	Outsider
	// Descriptors were left open by the launcher, by what they lead to.
	Descriptors map[string]int
	// Ring describes the io_uring at Descriptors["ring"].
	Ring string
	// Names of what a machine may lack are empty there.
	Loop     string // a block device that holds the secret
	Btrfs    string // a btrfs with the directories work and outside
	Cgroup   string // a cgroup (version 2) of the user with a process outside in it
	Freezer  string // the same in the freezer hierarchy of version 1
	Agent    string // the release_agent of a hierarchy of version 1
	Memory   string // the memory limit of a process outside
	Tap      string // a tap interface of the user
	Mount    string // a tmpfs that was mounted outside
	Binfmt   string // a mounted binfmt_misc
	Terminal bool   // there is a controlling terminal
}

// An Outsider is a process of the same user that is not confined.
type Outsider struct {
	PID     int
	Address uint64 // of the secret in its memory
	File    int    // its descriptor of hidden/key
	TCP     int    // the port on which it listens, on 127.0.0.1 and ::1
	UDP     int
	Name    string // the abstract stream socket on which it listens
	Post    string // its abstract datagram socket
	Path    string // the unix socket on which it hands out a descriptor of hidden/key
	PTY     string // a terminal of its own
	Segment int    // shared memory
	Queue   int    // messages
	Set     int    // semaphores
	MQ      string // a POSIX message queue
	Key     string // the description of a key in the user's keyring
	Volume  uint64 // the number of the hidden subvolume hidden-3
	// Signals is a file that it writes when SIGUSR2 arrives.
	Signals string
}
