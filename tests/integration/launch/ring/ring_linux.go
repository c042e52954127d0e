// Package ring is a small io_uring, for tests that try to work around a
// confinement with one.
package ring

import (
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations (linux/io_uring.h).
const (
	OpConnect = 16
	OpOpenat  = 18
	OpSend    = 26
	OpSocket  = 45
)

// SQPoll makes a ring that a thread of the kernel serves.
const SQPoll = 1 << 1

const (
	entries             = 8
	offSQEs             = 0x10000000
	enterGetEvents      = 1
	enterWakeup         = 2
	registerPersonality = 9
	needWakeup          = 1
)

// params is struct io_uring_params.
type params struct {
	SQEntries, CQEntries, Flags, SQThreadCPU, SQThreadIdle, Features, WQFD uint32
	_                                                                      [3]uint32
	SQ                                                                     struct {
		Head, Tail, Mask, Entries, Flags, Dropped, Array, _ uint32
		_                                                   uint64
	}
	CQ struct {
		Head, Tail, Mask, Entries, Overflow, CQEs, Flags, _ uint32
		_                                                   uint64
	}
}

// A Ring is an io_uring of this process or of the one that made it.
type Ring struct {
	FD int
	p  params
	// Personality, if not 0, is whose credentials requests have.
	Personality uint16

	queue, sqes []byte
}

// New makes a ring. It is not mapped, so that it can be handed on.
func New(flags uint32) (*Ring, error) {
	r := &Ring{}
	r.p.Flags = flags
	r.p.SQThreadIdle = 60_000
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, entries, uintptr(unsafe.Pointer(&r.p)), 0)
	if errno != 0 {
		return nil, errno
	}
	r.FD = int(fd)
	return r, nil
}

// Register gives the ring the credentials that this thread has now.
func (r *Ring) Register() error {
	id, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.FD), registerPersonality, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	r.Personality = uint16(id)
	return nil
}

// String is what [Inherited] needs of the ring besides the descriptor.
func (r *Ring) String() string {
	return fmt.Sprintf("%d:%s", r.Personality, hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Pointer(&r.p)), unsafe.Sizeof(r.p))))
}

// Inherited is the ring that another process made.
func Inherited(fd int, text string) (*Ring, error) {
	r := &Ring{FD: fd}
	var body string
	if _, err := fmt.Sscanf(text, "%d:%s", &r.Personality, &body); err != nil {
		return nil, err
	}
	data, err := hex.DecodeString(body)
	if err != nil || len(data) != int(unsafe.Sizeof(r.p)) {
		return nil, fmt.Errorf("not the parameters of a ring: %q", text)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&r.p)), unsafe.Sizeof(r.p)), data)
	return r, nil
}

func (r *Ring) mapped() (err error) {
	if r.queue != nil {
		return nil
	}
	const prot, shared = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	size := max(int(r.p.SQ.Array+4*r.p.SQEntries), int(r.p.CQ.CQEs+16*r.p.CQEntries))
	if r.queue, err = unix.Mmap(r.FD, 0, size, prot, shared); err != nil {
		return err
	}
	r.sqes, err = unix.Mmap(r.FD, offSQEs, int(64*r.p.SQEntries), prot, shared)
	return err
}

func (r *Ring) word(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.queue[off])) }

// Do makes one request and waits for its result.
func (r *Ring) Do(op uint8, fd int32, off uint64, addr unsafe.Pointer, length uint32) (int32, error) {
	keep = addr
	return r.DoAt(op, fd, off, uintptr(addr), length)
}

// keep holds what the kernel was given, in the heap.
var keep unsafe.Pointer //nolint:unused // that it is stored is its use

// DoAt is Do with an address of the process that serves the ring.
func (r *Ring) DoAt(op uint8, fd int32, off uint64, addr uintptr, length uint32) (int32, error) {
	if err := r.mapped(); err != nil {
		return 0, err
	}
	tail := atomic.LoadUint32(r.word(r.p.SQ.Tail))
	at := tail & *r.word(r.p.SQ.Mask)
	sqe := r.sqes[64*at : 64*at+64]
	clear(sqe)
	sqe[0] = op
	*(*int32)(unsafe.Pointer(&sqe[4])) = fd
	*(*uint64)(unsafe.Pointer(&sqe[8])) = off
	*(*uint64)(unsafe.Pointer(&sqe[16])) = uint64(addr)
	*(*uint32)(unsafe.Pointer(&sqe[24])) = length
	*(*uint16)(unsafe.Pointer(&sqe[42])) = r.Personality
	*r.word(r.p.SQ.Array + 4*at) = at
	head := atomic.LoadUint32(r.word(r.p.CQ.Head))
	atomic.StoreUint32(r.word(r.p.SQ.Tail), tail+1)
	if r.p.Flags&SQPoll == 0 {
		if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.FD), 1, 1, enterGetEvents, 0, 0); errno != 0 {
			return 0, errno
		}
	}
	// The kernel's thread needs no system call of ours; there is nothing to
	// wait on but the tail.
	for deadline := time.Now().Add(20 * time.Second); atomic.LoadUint32(r.word(r.p.CQ.Tail)) == head; {
		if time.Now().After(deadline) {
			return 0, unix.ETIMEDOUT
		}
		if atomic.LoadUint32(r.word(r.p.SQ.Flags))&needWakeup != 0 {
			_, _, _ = unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.FD), 1, 0, enterWakeup, 0, 0)
		}
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	cqe := r.p.CQ.CQEs + 16*(head&*r.word(r.p.CQ.Mask))
	result := *(*int32)(unsafe.Pointer(&r.queue[cqe+8]))
	atomic.StoreUint32(r.word(r.p.CQ.Head), head+1)
	if result < 0 {
		return 0, unix.Errno(-result)
	}
	return result, nil
}
