"""What an agent is given besides its task (instructions, knowledge, skills, tools), as a person made or accepted it last."""
