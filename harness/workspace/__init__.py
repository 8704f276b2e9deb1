"""An agent's context besides its task (instructions, knowledge, skills, tools), as last written or accepted by a person."""
