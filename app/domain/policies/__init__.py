"""When and how a conversation is compacted, as data: policies, presets, protection."""
