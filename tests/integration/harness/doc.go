// Package harness tests a shim end to end, in the way in which an eval harness in
// Node meets it: install-shim puts it in front of paperclip-runnerd, the harness
// sets its variable and starts runners by every means of node:child_process, and
// the runners, their shells and what those leave behind try what they must not.
package harness
