"""Policies, one per file: frozen configuration, state, choose, update.  They never see theta*."""
