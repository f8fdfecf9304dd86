"""What a model is sent: the state block laid out, and the context fitted into its room."""
