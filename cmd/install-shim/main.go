package main

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set by the linker.
var version string

// Exit codes of every command but run, which has those of the shim.
const (
	exitOK     = 0
	exitFailed = 1 // refused, or a step went wrong
	exitUsage  = 2
)

func main() {
	if os.Getenv(helperEnv) != "" {
		if err := probeHelper(os.Stdin, os.Stdout); err != nil {
			voice{out: os.Stdout, err: os.Stderr}.fail(err)
			os.Exit(exitFailed)
		}
		os.Exit(exitOK)
	}
	// One thread makes all changes, so that a trace shows them in their order.
	runtime.LockOSThread()
	a := &admin{
		voice:   voice{out: os.Stdout, err: os.Stderr},
		stdin:   os.Stdin,
		environ: os.Environ(),
	}
	os.Exit(a.main(os.Args[1:]))
}

// An admin is one call of this command.
type admin struct {
	voice
	stdin   io.Reader
	environ []string
}

func (a *admin) main(args []string) int {
	if len(args) == 0 {
		a.print(helpText[""])
		return exitUsage
	}
	name, args := args[0], args[1:]
	var err error
	switch name {
	case "install":
		err = a.install(args)
	case "uninstall":
		err = a.uninstall(args)
	case "status":
		err = a.status(args)
	case "run":
		return a.run(args)
	case "probe":
		return a.probe(args)
	case "explain":
		err = a.explain(args)
	case "profile":
		err = a.profile(args)
	case "notice":
		err = a.notice(args)
	case "check-command":
		err = a.checkCommand(args)
	case "policy":
		err = a.policy(args)
	case "version", "--version", "-version":
		a.print("install-shim " + ownVersion() + "\n")
	case "help", "--help", "-help", "-h":
		err = a.help(args)
	default:
		err = &usageError{msg: "unknown command " + show(name)}
	}
	return a.finish(err)
}

// finish says what went wrong, and returns the exit code for it.
func (a *admin) finish(err error) int {
	var usage *usageError
	var help *helpWanted
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &help):
		a.print(helpText[help.command])
		return exitOK
	case errors.As(err, &usage):
		a.fail(err)
		return exitUsage
	case errors.Is(err, errSaid):
		return exitFailed
	default:
		a.fail(err)
		return exitFailed
	}
}

// getenv returns the first value of a variable, as getenv(3) does.
func (a *admin) getenv(name string) string {
	for _, s := range a.environ {
		if v, ok := strings.CutPrefix(s, name+"="); ok {
			return v
		}
	}
	return ""
}

func ownVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
