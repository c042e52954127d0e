package main

import (
	"syscall"
	"unsafe"
)

var (
	out     [16 << 20]byte
	outLen  uintptr
	lenAt   uintptr
	numbers [64]uint64
	name    [64]byte
	link    [4096]byte
)

// An item is a name, a space, 16 hexadecimal digits for the length, a line
// feed, that many bytes, and a line feed.
//
//go:nosplit
func begin(name string) {
	str(name)
	str(" ")
	lenAt = outLen
	outLen += 16
	str("\n")
}

//go:nosplit
func end() {
	hex((*byte)(unsafe.Add(unsafe.Pointer(&out), lenAt)), uint64(outLen-lenAt-17))
	str("\n")
}

//go:nosplit
func str(s string) {
	p := unsafe.Pointer(unsafe.StringData(s))
	for i := 0; i < len(s); i++ {
		put(*(*byte)(unsafe.Add(p, i)))
	}
}

//go:nosplit
func put(b byte) {
	*(*byte)(unsafe.Add(unsafe.Pointer(&out), outLen)) = b
	outLen++
}

//go:nosplit
func num(v uint64) {
	hex((*byte)(unsafe.Add(unsafe.Pointer(&out), outLen)), v)
	outLen += 16
	put(' ')
}

// value is an item of one number.
//
//go:nosplit
func value(name string, v uintptr) {
	begin(name)
	num(uint64(v))
	end()
}

// words is an item of the first n of numbers.
//
//go:nosplit
func words(name string, n uintptr) {
	begin(name)
	for i := uintptr(0); i < n; i++ {
		num(*(*uint64)(unsafe.Add(unsafe.Pointer(&numbers), i*word)))
	}
	end()
}

//go:nosplit
func clear(v uint64) {
	for i := uintptr(0); i < uintptr(len(numbers)); i++ {
		*(*uint64)(unsafe.Add(unsafe.Pointer(&numbers), i*word)) = v
	}
}

// list is an item of NUL-ended strings.
//
//go:nosplit
func list(name string, p unsafe.Pointer) {
	begin(name)
	for *(*uintptr)(p) != 0 {
		s := *(*unsafe.Pointer)(p)
		for *(*byte)(s) != 0 {
			put(*(*byte)(s))
			s = unsafe.Add(s, 1)
		}
		put(0)
		p = unsafe.Add(p, word)
	}
	end()
}

// proc is an item that holds the file /proc/self/NAME, or the errno.
//
//go:nosplit
func proc(file string) {
	begin(file)
	path := unsafe.Pointer(&name)
	copyTo(path, "/proc/self/")
	copyTo(unsafe.Add(path, len("/proc/self/")), file)
	fd := open((*byte)(path), syscall.O_RDONLY)
	if failed(fd) {
		num(uint64(fd))
		end()
		return
	}
	for {
		n := raw(syscall.SYS_READ, fd, uintptr(unsafe.Add(unsafe.Pointer(&out), outLen)), 1<<20, 0, 0)
		if failed(n) {
			num(uint64(n))
			break
		}
		if n == 0 {
			break
		}
		outLen += n
	}
	raw(syscall.SYS_CLOSE, fd, 0, 0, 0, 0)
	end()
}

// copyTo writes s and NUL.
//
//go:nosplit
func copyTo(p unsafe.Pointer, s string) {
	q := unsafe.Pointer(unsafe.StringData(s))
	for i := 0; i < len(s); i++ {
		*(*byte)(unsafe.Add(p, i)) = *(*byte)(unsafe.Add(q, i))
	}
	*(*byte)(unsafe.Add(p, len(s))) = 0
}

// proclink is an item that holds where /proc/self/NAME leads to.
//
//go:nosplit
func proclink(file string) {
	begin(file)
	path := unsafe.Pointer(&name)
	copyTo(path, "/proc/self/")
	copyTo(unsafe.Add(path, len("/proc/self/")), file)
	n := raw(syscall.SYS_READLINKAT, atFDCWD, uintptr(path), uintptr(unsafe.Add(unsafe.Pointer(&out), outLen)), 4096, 0)
	if failed(n) {
		num(uint64(n))
	} else {
		outLen += n
	}
	end()
}

// descriptors comes first, while nothing of ours is open.
//
//go:nosplit
func descriptors() {
	begin("descriptors")
	for fd := uintptr(0); fd < 1024; fd++ {
		flags := raw(syscall.SYS_FCNTL, fd, syscall.F_GETFD, 0, 0, 0)
		if failed(flags) {
			continue
		}
		num(uint64(fd))
		num(uint64(flags))
		num(uint64(raw(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0, 0, 0)))
		num(uint64(raw(syscall.SYS_LSEEK, fd, 0, 1, 0, 0)))
		// struct stat: device, inode
		raw(syscall.SYS_FSTAT, fd, ptr(&link[0]), 0, 0, 0)
		num(*(*uint64)(unsafe.Pointer(&link)))
		num(*(*uint64)(unsafe.Pointer(unsafe.Add(unsafe.Pointer(&link), 8))))
		put('\n')
	}
	end()
}

//go:nosplit
func witness() {
	descriptors()
	list("argv", argv)
	list("envp", envp)
	witnessSignals()
	witnessProcess()
	witnessPrctl()
	witnessKeys()
	witnessProc()

	fd := uintptr(1)
	if argc > 1 && *arg(1) == '/' {
		fd = open(arg(1), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC)
		if failed(fd) {
			exit(97)
		}
	}
	for done := uintptr(0); done < outLen; {
		n := raw(syscall.SYS_WRITE, fd, uintptr(unsafe.Add(unsafe.Pointer(&out), done)), outLen-done, 0, 0)
		if failed(n) {
			exit(96)
		}
		done += n
	}
	exit(0)
}

//go:nosplit
func witnessSignals() {
	begin("dispositions")
	for s := uintptr(1); s <= 64; s++ {
		raw(syscall.SYS_RT_SIGACTION, s, 0, ptr(&action), 8, 0)
		num(uint64(s))
		num(uint64(action.handler))
		num(uint64(action.flags))
		num(action.mask)
		put('\n')
	}
	end()
	raw(syscall.SYS_RT_SIGPROCMASK, 0, 0, ptr(&number), 8, 0)
	value("mask", uintptr(number))
	raw(syscall.SYS_RT_SIGPENDING, ptr(&number), 8, 0, 0, 0)
	value("pending", uintptr(number))
	clear(0)
	raw(syscall.SYS_SIGALTSTACK, 0, ptr(&numbers), 0, 0, 0)
	words("alternate stack", 3)
	for i := uintptr(0); i < 3; i++ {
		clear(0)
		raw(syscall.SYS_GETITIMER, i, ptr(&numbers), 0, 0, 0)
		words("interval timer", 4)
	}
}

//go:nosplit
func witnessProcess() {
	old := raw(syscall.SYS_UMASK, 0, 0, 0, 0, 0)
	raw(syscall.SYS_UMASK, old, 0, 0, 0, 0)
	value("umask", old)
	value("nice", raw(syscall.SYS_GETPRIORITY, 0, 0, 0, 0, 0))
	value("scheduler", raw(syscall.SYS_SCHED_GETSCHEDULER, 0, 0, 0, 0, 0))
	clear(0)
	value("parameters", raw(syscall.SYS_SCHED_GETPARAM, 0, ptr(&numbers), 0, 0, 0))
	words("parameter", 1)
	clear(0)
	raw(syscall.SYS_SCHED_GETAFFINITY, 0, 128, ptr(&numbers), 0, 0)
	words("affinity", 16)
	value("ioprio", raw(ioprio, 1, 0, 0, 0, 0))
	value("pgid", raw(syscall.SYS_GETPGID, 0, 0, 0, 0, 0))
	value("sid", raw(syscall.SYS_GETSID, 0, 0, 0, 0, 0))
	value("ppid", raw(syscall.SYS_GETPPID, 0, 0, 0, 0, 0))
	capHead.version = 0x20080522
	raw(syscall.SYS_CAPGET, ptr(&capHead), ptr(&capData), 0, 0, 0)
	begin("capabilities")
	for i := uintptr(0); i < 6; i++ {
		num(uint64(*(*uint32)(unsafe.Add(unsafe.Pointer(&capData), i*4))))
	}
	end()
	begin("cwd")
	n := raw(syscall.SYS_GETCWD, ptr(&link[0]), uintptr(len(link)), 0, 0, 0)
	for i := uintptr(0); !failed(n) && i < n; i++ {
		put(*(*byte)(unsafe.Add(unsafe.Pointer(&link), i)))
	}
	end()
}

//go:nosplit
func option(name string, n uintptr) { value(name, raw(syscall.SYS_PRCTL, n, 0, 0, 0, 0)) }

//go:nosplit
func witnessPrctl() {
	clear(0)
	raw(syscall.SYS_PRCTL, syscall.PR_GET_PDEATHSIG, ptr(&numbers), 0, 0, 0)
	words("parent-death signal", 1)
	clear(0)
	raw(syscall.SYS_PRCTL, prGetName, ptr(&numbers), 0, 0, 0)
	words("name", 2)
	clear(0)
	raw(syscall.SYS_PRCTL, prGetSubreaper, ptr(&numbers), 0, 0, 0)
	words("subreaper", 1)
	option("securebits", prGetSecurebits)
	option("timer slack", prGetTimerslack)
	option("dumpable", prGetDumpable)
	option("keepcaps", prGetKeepcaps)
	option("no new privileges", prGetNoNewPrivs)
	option("seccomp mode", prGetSeccomp)
	option("huge pages disabled", prGetTHPDisable)
	option("machine check", prMceKillGet)
	option("speculation", prGetSpeculation)
	begin("ambient")
	for n := uintptr(0); n < 64; n++ {
		num(uint64(raw(syscall.SYS_PRCTL, prCapAmbient, 1, n, 0, 0)))
	}
	end()
}

// witnessKeys looks at the thread's, the process's, and the session's keyring.
//
//go:nosplit
func witnessKeys() {
	for id := uintptr(1); id <= 3; id++ {
		value("keyring", raw(syscall.SYS_KEYCTL, keyctlGetID, -id, 0, 0, 0))
	}
	begin("keyring description")
	for id := uintptr(1); id <= 3; id++ {
		n := raw(syscall.SYS_KEYCTL, keyctlDescribe, -id, ptr(&link[0]), uintptr(len(link)), 0)
		for i := uintptr(0); !failed(n) && i < n; i++ {
			put(*(*byte)(unsafe.Add(unsafe.Pointer(&link), i)))
		}
	}
	end()
}

//go:nosplit
func witnessProc() {
	proc("status")
	proc("limits")
	proc("stat")
	proc("cgroup")
	proc("oom_score_adj")
	proc("timerslack_ns")
	proc("personality")
	proc("environ")
	proc("cmdline")
	proc("comm")
	proc("coredump_filter")
	proc("loginuid")
	proc("sessionid")
	proc("timers")
	proc("uid_map")
	proc("mountinfo")
	proclink("exe")
	proclink("cwd")
	proclink("root")
	proclink("ns/mnt")
	proclink("ns/user")
	proclink("ns/pid")
	proclink("ns/net")
	proclink("ns/ipc")
}
