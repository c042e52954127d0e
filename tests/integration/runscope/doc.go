// Package runscope tests, against the real static binary, that each launch sees
// only its own state: the templates of the built-in profile paperclip-runner and
// of profiles of others, with what a hostile session leaves for the next launch.
package runscope
