package bare

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Unset leaves a number of a [State] as it is.
const Unset = ^uint64(0)

// A State is what a caller hands over by execve. [NewState] gives one that
// changes nothing but the signals.
type State struct {
	Path    string
	Dir     string // working directory
	Keyring string // name of the session keyring to join
	Argv    []string
	Env     []string

	// Sets of signals: bit n-1 stands for signal n.
	Ignore, Block Signals
	// PendingProcess and PendingThread are sent before the execve.
	PendingProcess, PendingThread Signals
	// Close has a bit for each of the descriptors 0 to 2.
	Close uint64
	// DeathSignal is PR_SET_PDEATHSIG.
	DeathSignal uint64

	Umask, Nice, Timerslack, Personality    uint64
	TimerReal, TimerVirtual, TimerProf      uint64 // seconds
	Scheduler, Affinity, OOMScoreAdj        uint64
	Session, Securebits, UID, Ambient       uint64
	NoFileSoft, NoFileHard                  uint64
	CoreSoft, CoreHard                      uint64
	Execveat                                uint64
	NoNewPrivs, Subreaper, HugePageDisabled uint64
	// CloseOnExec is a descriptor that the execve closes.
	CloseOnExec uint64
}

// Values of Session; they may be combined.
const (
	SessionNew      = 1 << iota // setsid
	SessionTerminal             // setsid, and descriptor 3 becomes the terminal
	SessionGroup                // a process group of its own
)

// Values of Execveat: AT_EMPTY_PATH with a descriptor that stays open, or one
// that is closed by the execve.
const (
	ExecveatKeep  = 1
	ExecveatClose = 2
)

// Signals is a set of signals.
type Signals uint64

// Set makes a set.
func Set(signals ...syscall.Signal) (s Signals) {
	for _, sig := range signals {
		s |= 1 << (sig - 1)
	}
	return s
}

// RandomSet makes a set of about a third of all signals.
func RandomSet(r *rand.Rand) Signals { return Signals(r.Uint64() & (r.Uint64() | r.Uint64())) }

// NewState returns a state for a program with these arguments.
func NewState(path string, argv ...string) State {
	return State{
		Path: path, Argv: argv, DeathSignal: Unset,
		Umask: Unset, Nice: Unset, Timerslack: Unset, Personality: Unset,
		TimerReal: Unset, TimerVirtual: Unset, TimerProf: Unset,
		Scheduler: Unset, Affinity: Unset, OOMScoreAdj: Unset,
		Session: Unset, Securebits: Unset, UID: Unset, Ambient: Unset,
		NoFileSoft: Unset, NoFileHard: Unset, CoreSoft: Unset, CoreHard: Unset,
		NoNewPrivs: Unset, Subreaper: Unset, HugePageDisabled: Unset, CloseOnExec: Unset,
	}
}

// encode writes what testdata/program/caller.go reads.
func (s State) encode() []byte {
	var b []byte
	for _, v := range []uint64{
		uint64(s.Ignore), uint64(s.Block), s.Close, s.DeathSignal, uint64(s.PendingProcess), uint64(s.PendingThread),
		s.Umask, s.Nice, s.Timerslack, s.Personality, s.TimerReal, s.TimerVirtual, s.TimerProf,
		s.Scheduler, s.Affinity, s.Session, s.Securebits, s.UID, s.NoFileSoft, s.NoFileHard, s.Execveat,
		s.Ambient, s.NoNewPrivs, s.Subreaper, s.HugePageDisabled, s.CoreSoft, s.CoreHard, s.OOMScoreAdj, s.CloseOnExec,
		uint64(len(s.Argv)), uint64(len(s.Env)),
	} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, text := range append(append([]string{s.Path, s.Dir, s.Keyring}, s.Argv...), s.Env...) {
		b = append(append(b, text...), 0)
	}
	return b
}

// A Caller turns states into processes.
type Caller struct {
	path, state string
}

// NewCaller makes a caller with its files in dir, which must be readable by the
// user of every state. It serves one start at a time.
func NewCaller(tb testing.TB, dir string) *Caller {
	tb.Helper()
	return &Caller{path: caller.Install(tb, dir, "caller"), state: filepath.Join(dir, "state")}
}

// Command returns the program and the arguments that start the state, as often
// as wanted, until the next call.
func (c *Caller) Command(tb testing.TB, s State) (path string, argv []string) {
	tb.Helper()
	if err := os.WriteFile(c.state, s.encode(), 0o644); err != nil {
		tb.Fatal(err)
	}
	return c.path, []string{"caller", c.state}
}

// Start starts the state with these files as descriptors, and in the process
// attributes given. The process inherits nothing else.
func (c *Caller) Start(tb testing.TB, s State, files []*os.File, sys *syscall.SysProcAttr) *os.Process {
	tb.Helper()
	path, argv := c.Command(tb, s)
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Dir: "/", Env: []string{}, Files: files, Sys: sys})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
