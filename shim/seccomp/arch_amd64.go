package seccomp

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// x32Bit is set in the number of an x32 system call, which reports the
	// same architecture (Documentation/userspace-api/seccomp_filter.rst).
	x32Bit = 0x40000000
)
