package checkpoint

import "fmt"

// HeaderBytes returns the bytes that a file of these tensors begins with: what NewWriter writes
// before the first tensor.
func HeaderBytes(tensors []TensorInfo, meta map[string]string, opt WriterOptions) ([]byte, error) {
	_, header, err := encodeHeader(tensors, meta, opt)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return header, nil
}
