"""The files of conversations: attached, shown, sent to models, copied to providers."""
