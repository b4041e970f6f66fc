"""Operations, types, verifiers and printing of every level. No passes live here."""
