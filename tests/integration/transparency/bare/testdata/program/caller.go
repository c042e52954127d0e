package main

import (
	"syscall"
	"unsafe"
)

// The file of a state begins with these 64-bit numbers; the strings follow, each
// ended by NUL: path, working directory, keyring, argv, envp. Package bare
// writes it. keep means that nothing is done.
const (
	hIgnore = iota
	hBlock
	hClose
	hDeathSig
	hPendingProcess
	hPendingThread
	hUmask
	hNice
	hTimerslack
	hPersonality
	hTimerReal
	hTimerVirtual
	hTimerProf
	hScheduler
	hAffinity
	hSession
	hSecurebits
	hUID
	hNoFileSoft
	hNoFileHard
	hExecveat
	hAmbient
	hNoNewPrivs
	hSubreaper
	hTHPDisable
	hCoreSoft
	hCoreHard
	hOOMScoreAdj
	hCloseOnExec
	hArgc
	hEnvc
	hCount
)

const keep = ^uint64(0)

const (
	sessionNew = 1 << iota
	sessionTerminal
	sessionGroup
)

var (
	state   [8 << 20]byte
	vectors [1 << 16]uintptr
	next    unsafe.Pointer
	scratch [64]byte
)

type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

type capHeader struct {
	version uint32
	pid     int32
}

var (
	action    sigaction
	timer     [4]uint64
	limit     [2]uint64
	number    uint64
	capHead   capHeader
	capData   [6]uint32
	oomPath   = [...]byte{'/', 'p', 'r', 'o', 'c', '/', 's', 'e', 'l', 'f', '/', 'o', 'o', 'm', '_', 's', 'c', 'o', 'r', 'e', '_', 'a', 'd', 'j', 0}
	nothing   [1]byte
	schedZero [8]byte
)

//go:nosplit
func h(i uintptr) uint64 { return *(*uint64)(unsafe.Add(unsafe.Pointer(&state), i*word)) }

// text returns the next string of the state.
//
//go:nosplit
func text() *byte {
	p := next
	for *(*byte)(next) != 0 {
		next = unsafe.Add(next, 1)
	}
	next = unsafe.Add(next, 1)
	return (*byte)(p)
}

//go:nosplit
func must(r uintptr, step uintptr) {
	if failed(r) {
		scratch[0], scratch[1] = 'a'+byte(step), '\n'
		raw(syscall.SYS_WRITE, 2, ptr(&scratch[0]), 2, 0, 0)
		exit(100 + step)
	}
}

//go:nosplit
func caller() {
	fd := open(arg(1), syscall.O_RDONLY)
	must(fd, 0)
	total := uintptr(0)
	for {
		n := raw(syscall.SYS_READ, fd, uintptr(unsafe.Add(unsafe.Pointer(&state), total)), uintptr(len(state))-total, 0, 0)
		must(n, 1)
		if n == 0 {
			break
		}
		total += n
	}
	raw(syscall.SYS_CLOSE, fd, 0, 0, 0, 0)
	next = unsafe.Add(unsafe.Pointer(&state), hCount*word)
	path, cwd, keyring := text(), text(), text()
	for i := uintptr(0); i < uintptr(h(hArgc)); i++ {
		*(*uintptr)(unsafe.Add(unsafe.Pointer(&vectors), i*word)) = ptr(text())
	}
	env := unsafe.Add(unsafe.Pointer(&vectors), (uintptr(h(hArgc))+1)*word)
	for i := uintptr(0); i < uintptr(h(hEnvc)); i++ {
		*(*uintptr)(unsafe.Add(env, i*word)) = ptr(text())
	}
	resources()
	session()
	identity()
	if *cwd != 0 {
		must(raw(syscall.SYS_CHDIR, ptr(cwd), 0, 0, 0, 0), 2)
	}
	if *keyring != 0 {
		raw(syscall.SYS_KEYCTL, keyctlJoinSession, ptr(keyring), 0, 0, 0)
	}
	executable := uintptr(0)
	if mode := h(hExecveat); mode != 0 {
		const oPath = 0x200000
		flags := uintptr(oPath)
		if mode == 2 {
			flags |= syscall.O_CLOEXEC
		}
		executable = open(path, flags)
		must(executable, 3)
	}
	for fd := uintptr(0); fd < 3; fd++ {
		if h(hClose)>>fd&1 != 0 {
			raw(syscall.SYS_CLOSE, fd, 0, 0, 0, 0)
		}
	}
	if fd := h(hCloseOnExec); fd != keep {
		must(raw(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, syscall.FD_CLOEXEC, 0, 0), 23)
	}
	signals()
	if h(hExecveat) != 0 {
		const sysExecveat, atEmptyPath = execveat, 0x1000
		must(raw(sysExecveat, executable, ptr(&nothing[0]), ptr(&vectors[0]), uintptr(env), atEmptyPath), 4)
	}
	must(raw(syscall.SYS_EXECVE, ptr(path), ptr(&vectors[0]), uintptr(env), 0, 0), 5)
}

// resources sets what only root may change first.
//
//go:nosplit
func resources() {
	if v := h(hNice); v != keep {
		must(raw(syscall.SYS_SETPRIORITY, 0, 0, uintptr(v), 0, 0), 6)
	}
	if v := h(hScheduler); v != keep {
		must(raw(syscall.SYS_SCHED_SETSCHEDULER, 0, uintptr(v), ptr(&schedZero), 0, 0), 7)
	}
	if number = h(hAffinity); number != keep {
		must(raw(syscall.SYS_SCHED_SETAFFINITY, 0, 8, ptr(&number), 0, 0), 8)
	}
	if v := h(hNoFileSoft); v != keep {
		limit[0], limit[1] = v, h(hNoFileHard)
		must(raw(syscall.SYS_PRLIMIT64, 0, 7, ptr(&limit), 0, 0), 9)
	}
	if v := h(hCoreSoft); v != keep {
		limit[0], limit[1] = v, h(hCoreHard)
		must(raw(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_CORE, ptr(&limit), 0, 0), 9)
	}
	if v := h(hOOMScoreAdj); v != keep { // three digits
		scratch[0], scratch[1], scratch[2] = byte('0'+v/100%10), byte('0'+v/10%10), byte('0'+v%10)
		fd := open(&oomPath[0], syscall.O_WRONLY)
		must(fd, 10)
		must(raw(syscall.SYS_WRITE, fd, ptr(&scratch[0]), 3, 0, 0), 10)
		raw(syscall.SYS_CLOSE, fd, 0, 0, 0, 0)
	}
	if v := h(hTimerslack); v != keep {
		must(raw(syscall.SYS_PRCTL, prSetTimerslack, uintptr(v), 0, 0, 0), 11)
	}
	if v := h(hPersonality); v != keep {
		must(raw(syscall.SYS_PERSONALITY, uintptr(v), 0, 0, 0, 0), 12)
	}
	if v := h(hUmask); v != keep {
		raw(syscall.SYS_UMASK, uintptr(v), 0, 0, 0, 0)
	}
	for i := uintptr(0); i < 3; i++ {
		v := h(hTimerReal + i)
		if v == keep {
			continue
		}
		timer[0], timer[1], timer[2], timer[3] = 7200, 0, v, 0
		must(raw(syscall.SYS_SETITIMER, i, ptr(&timer), 0, 0, 0), 13)
	}
	if h(hSubreaper) == 1 {
		must(raw(syscall.SYS_PRCTL, prSetSubreaper, 1, 0, 0, 0), 14)
	}
	if h(hTHPDisable) == 1 {
		must(raw(syscall.SYS_PRCTL, prSetTHPDisable, 1, 0, 0, 0), 14)
	}
}

//go:nosplit
func session() {
	v := h(hSession)
	if v == keep {
		return
	}
	if v&sessionGroup != 0 {
		must(raw(syscall.SYS_SETPGID, 0, 0, 0, 0, 0), 15)
	}
	if v&(sessionNew|sessionTerminal) != 0 {
		must(raw(syscall.SYS_SETSID, 0, 0, 0, 0, 0), 15)
	}
	if v&sessionTerminal != 0 {
		must(raw(syscall.SYS_IOCTL, 3, syscall.TIOCSCTTY, 0, 0, 0), 15)
	}
}

//go:nosplit
func identity() {
	ambient := h(hAmbient)
	if v := h(hSecurebits); v != keep {
		must(raw(syscall.SYS_PRCTL, prSetSecurebits, uintptr(v), 0, 0, 0), 16)
	}
	if v := uintptr(h(hUID)); v != uintptr(keep) {
		if ambient != keep {
			must(raw(syscall.SYS_PRCTL, 8, 1, 0, 0, 0), 17) // PR_SET_KEEPCAPS
		}
		must(raw(syscall.SYS_SETGROUPS, 0, 0, 0, 0, 0), 17)
		must(raw(syscall.SYS_SETRESGID, v, v, v, 0, 0), 17)
		must(raw(syscall.SYS_SETRESUID, v, v, v, 0, 0), 17)
	}
	if ambient != keep {
		capHead.version = 0x20080522
		for i := uintptr(0); i < 2; i++ {
			w := uint32(ambient >> (32 * i))
			p := (*[3]uint32)(unsafe.Add(unsafe.Pointer(&capData), i*12))
			p[0], p[1], p[2] = w, w, w
		}
		must(raw(syscall.SYS_CAPSET, ptr(&capHead), ptr(&capData), 0, 0, 0), 18)
		for n := uintptr(0); n < 64; n++ {
			if ambient>>n&1 != 0 {
				must(raw(syscall.SYS_PRCTL, prCapAmbient, 2, n, 0, 0), 18)
			}
		}
	}
	if h(hNoNewPrivs) == 1 {
		must(raw(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0), 19)
	}
	if v := h(hDeathSig); v != keep {
		must(raw(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(v), 0, 0, 0), 19)
	}
}

//go:nosplit
func signals() {
	for s := uintptr(1); s <= 64; s++ {
		action.handler = uintptr(h(hIgnore) >> (s - 1) & 1)
		if s != uintptr(syscall.SIGKILL) && s != uintptr(syscall.SIGSTOP) {
			must(raw(syscall.SYS_RT_SIGACTION, s, ptr(&action), 0, 8, 0), 20)
		}
	}
	number = h(hBlock)
	must(raw(syscall.SYS_RT_SIGPROCMASK, 2, ptr(&number), 0, 8, 0), 21)
	pid := raw(syscall.SYS_GETPID, 0, 0, 0, 0, 0)
	for s := uintptr(1); s <= 64; s++ {
		if h(hPendingProcess)>>(s-1)&1 != 0 {
			must(raw(syscall.SYS_KILL, pid, s, 0, 0, 0), 22)
		}
		if h(hPendingThread)>>(s-1)&1 != 0 {
			must(raw(syscall.SYS_TGKILL, pid, pid, s, 0, 0), 22)
		}
	}
}
