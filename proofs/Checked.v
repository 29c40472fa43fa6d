(* Every statement of Statements.v, proved, with what its proof assumes. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides TwoSides Levels Chain Certificates Releases.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Theorem transcript_checked : transcript_statement.
Proof. by move=> R S O density spent T ok wi o; exact: transcript_within. Qed.

Theorem side_checked : side_statement.
Proof. by move=> R S K e D f g occurs F fin sup chg rec; exact: (side_bound sup chg rec). Qed.

Theorem sweep_checked : sweep_statement.
Proof.
move=> R S m P ch T i k levels Tik ok occurs so no FR FL finR finL rR rL g x x'.
exact: (sweep_conditional ch Tik ok so no rR rL).
Qed.

Theorem program_checked : program_statement.
Proof.
by move=> R S A lim u par pass p q v L signs feas; exact: (program_bound signs feas).
Qed.

Theorem endless_checked : endless_statement.
Proof.
move=> R S pi Q p0 Q0 Q1 pQ a b f b1 f1 rR rL fR fL cR cL T i k levels g x x' Tik ok lb lf la.
exact: (endless p0 Q0 Q1 pQ b1 f1 cR cL Tik ok lb lf la).
Qed.
