"""The only package that calls out or loads a model: embedders, rerankers, writers."""
