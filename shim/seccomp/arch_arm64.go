package seccomp

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0

	// auditArch32 is how 32-bit programs call the kernel.
	auditArch32 = unix.AUDIT_ARCH_ARM
)

var numbers32 = numbers{addKey: 309, requestKey: 310, keyctl: 311, ioctl: 54, prlimit: 369, setpriority: 97, ioprioSet: 314}
