package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
)

var steps = map[string]func(){
	// hold says that it is there on descriptor 3, and waits for descriptor 4
	// to end.
	"hold": hold,
	// threads is hold in a process with many threads of the runtime.
	"threads": func() {
		startThreads(16)
		hold()
	},
	// interruptible is hold with the caller's mask.
	"interruptible": func() {
		boot.UnblockSignals()
		hold()
		boot.BlockSignals()
	},
	// hung is hold while another thread takes the signals.
	"hung": func() {
		unblocked := make(chan bool)
		go func() {
			runtime.LockOSThread()
			boot.UnblockSignals()
			close(unblocked)
			select {}
		}()
		<-unblocked
		hold()
	},
	// busy makes the runtime want to preempt the main thread.
	"busy": func() {
		startThreads(4)
		for range 16 {
			go runtime.GC()
			spin()
		}
	},
	// retry calls Exec in vain first.
	"retry": func() {
		err := boot.Exec("/sys/nowhere", boot.Argv(), boot.Envp())
		if !errors.Is(err, syscall.ENOENT) {
			fail(fmt.Sprint("exec of nothing: ", err))
		}
		err = boot.Exec("/bin\x00/true", boot.Argv(), boot.Envp())
		if !errors.Is(err, syscall.EINVAL) {
			fail(fmt.Sprint("exec of a NUL: ", err))
		}
		err = boot.Exec("/bin/true", []string{"a\x00b"}, nil)
		if !errors.Is(err, syscall.EINVAL) {
			fail(fmt.Sprint("exec with a NUL in argv: ", err))
		}
		result := make(chan error)
		go func() { result <- boot.Exec("/bin/true", boot.Argv(), boot.Envp()) }()
		if err := <-result; !errors.Is(err, boot.ErrThread) {
			fail(fmt.Sprint("exec from another goroutine: ", err))
		}
	},
	// copies gives Exec strings of its own.
	"copies": func() {
		argv := boot.Argv()
		for i := range argv {
			argv[i] = strings.Clone(argv[i])
		}
		var env []string
		for _, e := range boot.Envp() {
			if !strings.HasPrefix(e, "BOOT_TEST_") {
				env = append(env, strings.Clone(e))
			}
		}
		fail(fmt.Sprint(boot.Exec(target(), argv, env)))
	},
	// part gives Exec a view that does not reach up to its NUL.
	"part": func() {
		argv := boot.Argv()
		argv[len(argv)-1] = argv[len(argv)-1][:2]
		fail(fmt.Sprint(boot.Exec(target(), argv, boot.Envp())))
	},
	// panic shows that a nil pointer is a panic that can be recovered.
	"panic": func() {
		defer func() {
			if recover() == nil {
				fail("no panic")
			}
			syscall.Write(1, []byte("recovered\n"))
			os.Exit(125)
		}()
		var p *int
		*p = 1
	},
	// notify is hold in a process that asked os/signal for SIGUSR1.
	"notify": func() {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGUSR1)
		hold()
		select {
		case <-c:
			fail("os/signal got a signal")
		default:
		}
	},
	// secure prints why a shim must refuse.
	"secure": func() {
		fmt.Println(boot.SecureReason())
		os.Exit(0)
	},
	// limit prints how many files the shim may open, after it opened one.
	"limit": func() {
		fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		var l syscall.Rlimit
		if err == nil {
			err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
			syscall.Close(fd)
		}
		fmt.Println(l.Cur, l.Max, err)
		os.Exit(0)
	},
	// describe prints what the package knows.
	"describe": func() {
		uid, _ := boot.Auxv(11)
		_, none := boot.Auxv(1 << 40)
		fmt.Printf("argv=%q execfn=%q closed=%v uid=%d none=%v os.Args=%q os.Environ=%d\n",
			boot.Argv(), boot.ExecFn(), boot.ClosedAtStart(), uid, none, os.Args, len(os.Environ()))
		os.Exit(0)
	},
}

func target() string {
	for _, e := range boot.Envp() {
		if v, ok := strings.CutPrefix(e, "BOOT_TEST_TARGET="); ok {
			return v
		}
	}
	return ""
}

func hold() {
	syscall.Write(3, []byte("."))
	var b [1]byte
	for {
		if _, err := syscall.Read(4, b[:]); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	syscall.Close(3)
	syscall.Close(4)
}

// startThreads makes n threads that stay, each blocked in the kernel.
func startThreads(n int) {
	var started sync.WaitGroup
	for range n {
		started.Add(1)
		go func() {
			runtime.LockOSThread()
			var p [2]int
			if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
				fail(err.Error())
			}
			started.Done()
			var b [1]byte
			syscall.Read(p[0], b[:])
		}()
	}
	started.Wait()
}

var sink int

// spin runs for longer than the runtime lets a goroutine run (10 ms), without a
// call at which it could be preempted otherwise.
//
//go:noinline
func spin() {
	for i := range 1 << 26 {
		sink += i
	}
}
