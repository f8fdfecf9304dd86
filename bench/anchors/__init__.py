"""Measures how well rules find anchors, on conversations that two readers labelled sentence by sentence."""
