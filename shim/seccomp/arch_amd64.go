package seccomp

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// x32Bit is set in the number of an x32 system call, which reports the
	// same architecture (Documentation/userspace-api/seccomp_filter.rst).
	x32Bit = 0x40000000

	// auditArch32 is how 32-bit programs call the kernel, also by int 0x80 from a
	// 64-bit one.
	auditArch32 = unix.AUDIT_ARCH_I386
)

var numbers32 = numbers{addKey: 286, requestKey: 287, keyctl: 288, ioctl: 54, prlimit: 340, setpriority: 97, ioprioSet: 289}
