package output

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// write is write(2) without its signals: SIGPIPE from a pipe that nobody reads
// and SIGXFSZ beyond the limit of file sizes. They would wait, blocked, and
// kill the program as soon as it begins (execve(2): pending signals stay).
// What was pending before the call stays pending.
func write(fd int, line []byte) (int, error) {
	// Both signals go to the thread that writes (pipe(7), setrlimit(2)).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const signals = 1<<(unix.SIGPIPE-1) | 1<<(unix.SIGXFSZ-1)
	var before uint64
	if _, _, e := unix.RawSyscall(unix.SYS_RT_SIGPENDING, uintptr(unsafe.Pointer(&before)), unsafe.Sizeof(before), 0); e != 0 {
		return 0, e
	}
	n, err := unix.Write(fd, line)
	for err == unix.EINTR {
		n, err = unix.Write(fd, line)
	}
	if ours := uint64(signals) &^ before; (err == unix.EPIPE || err == unix.EFBIG) && ours != 0 {
		var now unix.Timespec
		// EAGAIN when the caller ignores the signal: then there is none.
		unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&ours)), 0, uintptr(unsafe.Pointer(&now)), unsafe.Sizeof(ours), 0, 0)
	}
	return n, err
}
