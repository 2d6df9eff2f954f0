"""What calls out or loads a model: embedders, rerankers, writers; nothing else touches the network."""
