// Package isolation tries to reach processes outside from a confined one.
package isolation
