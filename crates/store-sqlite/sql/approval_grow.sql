UPDATE state SET approvals = approvals + 1 RETURNING approvals
