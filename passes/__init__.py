"""The rules of `hlo-lint`: one defect a module, found in the facts about a compiled program."""
