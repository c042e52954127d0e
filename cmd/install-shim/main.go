// Command install-shim puts sandbox-exec-shim in front of programs, or in
// their place, takes it away again, and says where it stands.
//
// Nothing here confines anything: it moves files. What it promises is that at
// every moment, also after a crash between any two system calls, the name leads
// to a program that works, and that a file which is not a shim is never lost.
package main

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/place"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/policies"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/probe"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
)

// version is set by the linker.
var version string

// A command is one word of the command line.
type command struct {
	name, help string
	run        func(*voice.Caller, []string) error
}

// commands are all words, in the order of the overview.
func commands() []command {
	return []command{
		{"install", place.InstallHelp, place.Install},
		{"uninstall", place.UninstallHelp, place.Uninstall},
		{"status", place.StatusHelp, place.Status},
		{"run", policies.RunHelp, policies.Run},
		{"policy", policies.PolicyHelp, policies.Print},
		{"probe", probe.Help, probe.Run},
		{"explain", policies.ExplainHelp, policies.Explain},
		{"profile", policies.ProfileHelp, policies.Profile},
		{"notice", policies.NoticeHelp, policies.Notice},
		{"check-command", policies.CheckCommandHelp, policies.CheckCommand},
		{"version", versionHelp, printVersion},
		{"help", helpHelp, help},
	}
}

func main() {
	v := &voice.Caller{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()}
	if os.Getenv(probe.HelperEnv) != "" {
		os.Exit(v.Finish(probe.Helper(os.Stdin, os.Stdout)))
	}
	// One thread makes all changes, so that a trace shows them in their order.
	runtime.LockOSThread()
	os.Exit(call(v, os.Args[1:]))
}

// call runs one command and returns its exit code.
func call(v *voice.Caller, args []string) int {
	if len(args) == 0 {
		v.Print("%s", overview)
		return voice.ExitUsage
	}
	name := args[0]
	switch name {
	case "--help", "-help", "-h":
		name = "help"
	case "--version", "-version":
		name = "version"
	}
	c, ok := find(name)
	if !ok {
		return v.Finish(&voice.UsageError{Msg: "unknown command " + voice.Show(name)})
	}
	err := c.run(v, args[1:])
	if wanted, ok := errors.AsType[*voice.HelpWanted](err); ok {
		err = help(v, []string{wanted.Command})
	}
	return v.Finish(err)
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// help prints the text for a command, or for all.
func help(v *voice.Caller, args []string) error {
	if len(args) == 0 {
		v.Print("%s", overview)
		return nil
	}
	c, ok := find(args[0])
	if !ok || len(args) > 1 {
		return &voice.UsageError{Msg: "no help for " + voice.Show(args[0])}
	}
	v.Print("%s", c.help)
	return nil
}

func printVersion(v *voice.Caller, _ []string) error {
	text := version
	if text == "" {
		text = "(devel)"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
			text = info.Main.Version
		}
	}
	v.Print("install-shim %s\n", text)
	return nil
}
