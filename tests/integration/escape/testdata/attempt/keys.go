package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Keys, which processes of a user share, and for which the kernel starts a
// program as root.
func init() {
	add(kernel,
		attempt{Name: "add-key", do: func(*w) error {
			_, err := unix.AddKey("user", "escape-new", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
		attempt{Name: "key-of-outside", do: func(w *w) error {
			id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", w.Key, 0)
			if err != nil {
				return err
			}
			buf := make([]byte, 256)
			n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0)
			if err != nil {
				return err
			}
			return w.isSecret(string(buf[:n]))
		}},
		attempt{Name: "key-for-outside", do: func(*w) error {
			_, err := unix.AddKey("user", "escape-left", []byte("x"), unix.KEY_SPEC_USER_KEYRING)
			return err
		}},
		attempt{Name: "request-key", do: func(w *w) error {
			_, err := unix.RequestKey("user", w.Key, "", unix.KEY_SPEC_PROCESS_KEYRING)
			return asked(err)
		}},
		// The kernel starts /sbin/request-key; what it answers tells that it did.
		attempt{Name: "request-key-upcall", do: func(*w) error {
			_, err := unix.RequestKey("user", "escape-none", "x", unix.KEY_SPEC_PROCESS_KEYRING)
			return asked(err)
		}},
		attempt{Name: "join-session", do: func(*w) error {
			_, err := unix.KeyctlJoinSessionKeyring("escape")
			return err
		}},
		attempt{Name: "link-user-keyring", do: func(*w) error {
			_, err := unix.KeyctlInt(unix.KEYCTL_LINK, unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_PROCESS_KEYRING, 0, 0)
			return err
		}},
	)
	add(network,
		attempt{Name: "dns-resolver-key", Rare: "the key type dns_resolver", do: func(*w) error {
			_, err := unix.RequestKey("dns_resolver", "escape.invalid", "", unix.KEY_SPEC_PROCESS_KEYRING)
			if errors.Is(err, unix.ENOKEY) {
				return missing("the key type dns_resolver")
			}
			return asked(err)
		}},
	)
}

// asked takes an answer that only the search or the upcall can give for a
// success.
func asked(err error) error {
	if errors.Is(err, unix.ENOKEY) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
