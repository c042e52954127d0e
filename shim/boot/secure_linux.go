//go:build amd64 || arm64

package boot

import (
	"strconv"
	"syscall"
)

// SecureReason says why a shim must refuse to work, or "": the ids differ, or
// the kernel set AT_SECURE because of the shim's own file (setuid, setgid, file
// capabilities). Such a shim would lend privileges of its own to a caller who
// chooses its policy.
//
// A security module sets AT_SECURE too, when an execve changes the domain. That
// says nothing against the shim, so it is no reason. A file that cannot be
// looked at is one: it is not known then.
func SecureReason() string {
	if !entered {
		return ""
	}
	uid, _ := aux(atUID)
	euid, _ := aux(atEUID)
	gid, _ := aux(atGID)
	egid, _ := aux(atEGID)
	switch flag, _ := aux(atSecure); {
	case uid != euid:
		return "user id " + decimal(uid) + " and effective user id " + decimal(euid) + " differ"
	case gid != egid:
		return "group id " + decimal(gid) + " and effective group id " + decimal(egid) + " differ"
	case flag == 0:
		return ""
	}
	reason := privileged("/proc/self/exe")
	if reason == unknown && ExecFn() != "" {
		reason = privileged(ExecFn())
	}
	return reason
}

const unknown = "AT_SECURE is set, and this file cannot be looked at"

// privileged says what privileges the file at path gives to who starts it.
func privileged(path string) string {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return unknown
	}
	switch {
	case st.Mode&syscall.S_ISUID != 0:
		return "this file is setuid"
	case st.Mode&syscall.S_ISGID != 0:
		return "this file is setgid"
	}
	// ENODATA: there are none. EOPNOTSUPP: the file system has no such thing.
	switch _, err := syscall.Getxattr(path, "security.capability", nil); err {
	case nil:
		return "this file has capabilities"
	case syscall.ENODATA, syscall.EOPNOTSUPP:
		return ""
	default:
		return unknown
	}
}

func decimal(v uintptr) string { return strconv.FormatUint(uint64(v), 10) }
