"""The paper's variation study: how much advantages and action values change from one policy to the next."""
