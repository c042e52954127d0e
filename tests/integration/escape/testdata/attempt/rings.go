package main

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch/ring"
)

// Requests of an io_uring that is made inside (linux/io_uring.h).
const (
	opUnlinkat = 36
	opRenameat = 35
	opMkdirat  = 37
	opLinkat   = 39
)

func init() {
	const needs = "io_uring"
	cwd := unix.AT_FDCWD
	two := func(op uint8, from, to func(*w) string) func(*w) error {
		return func(w *w) error {
			r, err := ring.New(0)
			if err != nil {
				return err
			}
			// The second path stands where an offset would, its directory where a
			// length would.
			a, b := cstr(from(w)), cstr(to(w))
			_, err = r.DoAt(op, unix.AT_FDCWD, uint64(b), a, uint32(cwd))
			return err
		}
	}
	at := func(name string) func(*w) string { return func(w *w) string { return w.at(name) } }
	add(hidden,
		attempt{Name: "ring-open", Needs: needs, do: func(w *w) error {
			r, err := ring.New(0)
			if err != nil {
				return err
			}
			return byRing(w, r)
		}},
		attempt{Name: "ring-open-by-kernel-thread", Needs: needs, do: func(w *w) error {
			r, err := ring.New(ring.SQPoll)
			if err != nil {
				return err
			}
			return byRing(w, r)
		}},
		attempt{Name: "ring-open-with-personality", Needs: needs, do: func(w *w) error {
			r, err := ring.New(0)
			if err != nil {
				return err
			}
			if err := r.Register(); err != nil {
				return err
			}
			return byRing(w, r)
		}},
		attempt{Name: "ring-rename", Needs: needs, do: two(opRenameat, at("hidden/spare-ring-rename"), at("work/ring-renamed"))},
		attempt{Name: "ring-link", Needs: needs, do: two(opLinkat, at("hidden/key"), at("work/ring-hard"))},
		attempt{Name: "ring-unlink", Needs: needs, do: func(w *w) error { return one(opUnlinkat, w.spare("ring-unlink")) }},
		attempt{Name: "ring-mkdir", Needs: needs, do: func(w *w) error { return one(opMkdirat, w.at("hidden/ring-dir")) }},
	)
	add(network,
		attempt{Name: "ring-socket", Needs: needs, do: func(*w) error {
			r, err := ring.New(0)
			if err != nil {
				return err
			}
			fd, err := r.Do(ring.OpSocket, unix.AF_INET, unix.SOCK_STREAM, nil, 0)
			return opened(int(fd), err)
		}},
	)
}

func one(op uint8, path string) error {
	r, err := ring.New(0)
	if err != nil {
		return err
	}
	name := append([]byte(path), 0)
	_, err = r.Do(op, unix.AT_FDCWD, 0, unsafe.Pointer(&name[0]), 0)
	return err
}
