package main

import (
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch/ring"
)

// What the launcher left open.
func init() {
	add(hidden,
		attempt{Name: "inherited-file", do: func(w *w) error {
			buf := make([]byte, 256)
			n, err := unix.Pread(w.Descriptors["key"], buf, 0)
			if err != nil {
				return err
			}
			return w.isSecret(string(buf[:n]))
		}},
		attempt{Name: "inherited-directory", do: func(w *w) error { return listFD(w.Descriptors["hidden"], "key") }},
		attempt{Name: "inherited-directory-open", do: func(w *w) error {
			return w.secret(unix.Openat(w.Descriptors["hidden"], "key", unix.O_RDONLY, 0))
		}},
		attempt{Name: "inherited-path-open", do: func(w *w) error {
			return w.secret(unix.Openat(w.Descriptors["hidden-path"], "key", unix.O_RDONLY, 0))
		}},
		// Its list is one of what stands in a frozen directory.
		attempt{Name: "inherited-directory-above", do: func(w *w) error { return listFD(w.Descriptors["above"], "hidden") }},
		attempt{Name: "inherited-directory-above-open", do: func(w *w) error {
			return w.secret(unix.Openat(w.Descriptors["above"], "hidden/key", unix.O_RDONLY, 0))
		}},
		attempt{Name: "inherited-memory", do: func(w *w) error {
			buf := make([]byte, len(w.Secret))
			if _, err := unix.Pread(w.Descriptors["mem"], buf, int64(w.Address)); err != nil {
				return err
			}
			return w.isSecret(string(buf))
		}},
		attempt{Name: "inherited-process-directory", do: func(w *w) error {
			return w.secret(unix.Openat(w.Descriptors["proc"], "cwd/hidden/key", unix.O_RDONLY, 0))
		}},
		attempt{Name: "inherited-pidfd-descriptor", do: func(w *w) error {
			return w.secret(unix.PidfdGetfd(w.Descriptors["pidfd"], w.File, 0))
		}},
		attempt{Name: "inherited-mount-namespace", Root: true, do: func(w *w) error {
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return setup(err)
			}
			if err := unix.Setns(w.Descriptors["mnt"], unix.CLONE_NEWNS); err != nil {
				return err
			}
			return w.read(w.key())
		}},
		attempt{Name: "inherited-ring", Needs: "io_uring", do: func(w *w) error {
			r, err := ring.Inherited(w.Descriptors["ring"], w.Ring)
			if err != nil {
				return missing("io_uring")
			}
			return byRing(w, r)
		}},
		attempt{Name: "inherited-stdin", Limit: "Standard input, output and error", do: func(w *w) error {
			data, err := io.ReadAll(io.NewSectionReader(os.Stdin, 0, 256))
			if err != nil {
				return err
			}
			return w.isSecret(string(data))
		}},
		attempt{Name: "passed-by-socket", Limit: "Helpers outside", do: passed},
	)
	add(network,
		attempt{Name: "inherited-connection", do: func(w *w) error {
			_, err := unix.Write(w.Descriptors["connection"], []byte("inherited\n"))
			return err
		}},
		attempt{Name: "inherited-udp", do: func(w *w) error {
			return unix.Sendto(w.Descriptors["udp"], []byte("inherited"), 0, &unix.SockaddrInet4{Port: w.UDP, Addr: [4]byte{127, 0, 0, 1}})
		}},
		attempt{Name: "inherited-tap", Needs: "/dev/net/tun", do: func(w *w) error {
			fd, ok := w.Descriptors["tap"]
			if !ok {
				return missing("/dev/net/tun")
			}
			_, err := unix.Write(fd, make([]byte, 60))
			return err
		}},
		attempt{Name: "inherited-listener", do: func(w *w) error { return unix.Listen(w.Descriptors["listener"], 1) }},
	)
	add(signals,
		attempt{Name: "inherited-pidfd-signal", do: func(w *w) error {
			return unix.PidfdSendSignal(w.Descriptors["pidfd"], unix.SIGURG, nil, 0)
		}},
	)
	add(unixSocket,
		attempt{Name: "inherited-unix", do: func(w *w) error {
			return unix.Connect(w.Descriptors["unix"], &unix.SockaddrUnix{Name: w.Path})
		}},
	)
}

func listFD(fd int, name string) error {
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return err
	}
	again, err := unix.Dup(fd)
	return list(again, err, name)
}

// byRing reads what is hidden by a request of a ring.
func byRing(w *w, r *ring.Ring) error {
	path := append([]byte(w.key()), 0)
	fd, err := r.Do(ring.OpOpenat, unix.AT_FDCWD, 0, unsafe.Pointer(&path[0]), 0)
	return w.secret(int(fd), err)
}

// passed takes the descriptor that the process outside hands to everybody.
func passed(w *w) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: w.Path}); err != nil {
		return err
	}
	buf, oob := make([]byte, 16), make([]byte, 256)
	_, n, _, _, err := unix.Recvmsg(fd, buf, oob, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return fmt.Errorf("no descriptor was passed: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	got := make([]byte, 256)
	if n, err = unix.Pread(fds[0], got, 0); err != nil {
		return err
	}
	return w.isSecret(string(got[:n]))
}
