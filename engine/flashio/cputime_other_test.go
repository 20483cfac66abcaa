//go:build !unix

package flashio

import "time"

func processorTime() time.Duration { return 0 }
