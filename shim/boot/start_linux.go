//go:build amd64 || arm64

package boot

import (
	"syscall"
	"unsafe"
)

// What the entry notes. All of it is written before the runtime starts, and
// only read afterwards.
var (
	entered bool

	argc uintptr
	argv unsafe.Pointer // **byte, argc entries and NULL
	envp unsafe.Pointer // **byte, ended by NULL
	auxv unsafe.Pointer // pairs of words, ended by AT_NULL

	ignored [signals + 1]bool // SIG_IGN; everything else is SIG_DFL after an execve
	blocked uint64            // the caller's mask
	limit   [2]uint64         // RLIMIT_NOFILE, soft and hard
	closed  [3]bool           // descriptors 0 to 2
)

// frame is the start-up frame that the runtime sees in place of the kernel's:
// a name, the settings below, and the kernel's auxiliary vector. The entry
// point copies it to the stack, and knows its size.
var frame [frameWords]uintptr

const (
	frameWords = 106
	frameAuxv  = 7
)

// tls stands in for thread-local storage until the runtime has its own.
var tls [128]byte

var (
	runtimeName = [...]byte{'s', 'h', 'i', 'm', 0}

	// Preemption by signal would leave a SIGURG pending for the program. The
	// next two keep the runtime from reading cgroup files again and again, the
	// last from naming its mappings, a prctl for each.
	runtimeSettings = [...]byte{
		'G', 'O', 'D', 'E', 'B', 'U', 'G', '=',
		'a', 's', 'y', 'n', 'c', 'p', 'r', 'e', 'e', 'm', 'p', 't', 'o', 'f', 'f', '=', '1', ',',
		'c', 'o', 'n', 't', 'a', 'i', 'n', 'e', 'r', 'm', 'a', 'x', 'p', 'r', 'o', 'c', 's', '=', '0', ',',
		'u', 'p', 'd', 'a', 't', 'e', 'm', 'a', 'x', 'p', 'r', 'o', 'c', 's', '=', '0', ',',
		'd', 'e', 'c', 'o', 'r', 'a', 't', 'e', 'm', 'a', 'p', 'p', 'i', 'n', 'g', 's', '=', '0', 0,
	}

	// One processor: a launch is one thread's work, and waking idle ones for it
	// takes a tenth of its time.
	runtimeProcs = [...]byte{'G', 'O', 'M', 'A', 'X', 'P', 'R', 'O', 'C', 'S', '=', '1', 0}

	// Keeps a package that comes with the logger from asking with an ioctl
	// whether descriptor 1 is a terminal, before any code of ours runs.
	runtimeNoColor = [...]byte{'N', 'O', '_', 'C', 'O', 'L', 'O', 'R', '=', '1', 0}

	devNull = [...]byte{'/', 'd', 'e', 'v', '/', 'n', 'u', 'l', 'l', 0}
	rootDir = [...]byte{'/', 0}
)

// start runs on the bare stack that the kernel made; sp points to the argument
// count. It returns when the runtime is to start.
//
//go:nosplit
func start(sp unsafe.Pointer) {
	argc = *(*uintptr)(sp)
	argv = unsafe.Add(sp, word)
	envp = unsafe.Add(argv, (argc+1)*word)
	auxv = envp
	for *(*uintptr)(auxv) != 0 {
		auxv = unsafe.Add(auxv, word)
	}
	auxv = unsafe.Add(auxv, word)

	passThrough()

	noteSignals()
	clearTable()
	raw(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, 0, uintptr(unsafe.Pointer(&limit)), 0)
	fillDescriptors()
	needSpace()
	holdOpens()
	fillFrame()
	entered = true
}

// fillDescriptors puts something on each closed descriptor of 0 to 2, so that
// no file of ours gets there. The runtime would do it too, but dies where there
// is no /dev/null. Close-on-exec takes it away again when the program starts.
//
//go:nosplit
func fillDescriptors() {
	for fd := uintptr(0); fd < 3; fd++ {
		if raw(syscall.SYS_FCNTL, fd, syscall.F_GETFD, 0, 0, 0) != errno(syscall.EBADF) {
			continue
		}
		closed[fd] = true
		// The lowest free descriptor is fd: those below are open by now.
		got := raw(syscall.SYS_OPENAT, atFDCWD, uintptr(unsafe.Pointer(&devNull)), syscall.O_RDWR|syscall.O_CLOEXEC, 0, 0)
		if failed(got) {
			got = raw(syscall.SYS_OPENAT, atFDCWD, uintptr(unsafe.Pointer(&rootDir)), oPath|syscall.O_CLOEXEC, 0, 0)
		}
		if failed(got) {
			refuse(unsafe.StringData(noStandard), uintptr(len(noStandard)))
		}
	}
}

//go:nosplit
func fillFrame() {
	frame[0] = 1
	frame[1] = uintptr(unsafe.Pointer(&runtimeName))
	frame[3] = uintptr(unsafe.Pointer(&runtimeSettings))
	frame[4] = uintptr(unsafe.Pointer(&runtimeProcs))
	frame[5] = uintptr(unsafe.Pointer(&runtimeNoColor))
	p := auxv
	for i := frameAuxv; i+3 < frameWords && *(*uintptr)(p) != atNull; i += 2 {
		frame[i] = *(*uintptr)(p)
		frame[i+1] = *(*uintptr)(unsafe.Add(p, word))
		p = unsafe.Add(p, 2*word)
	}
}
