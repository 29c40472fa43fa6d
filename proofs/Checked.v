(* Every statement of Statements.v, proved, with what its proof assumes. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides TwoSides Levels Chain Certificates Releases
  Shown Contraction Influence Coalitions Counting.

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

Theorem shown_checked : shown_statement.
Proof.
move=> R S V shows m P a ch a1 T i k Tik occurs so no FR FL fR fL rR rL g x x'.
exact: (shown_sweep ch a1 Tik so no rR rL).
Qed.

Theorem contraction_checked : contraction_statement.
Proof.
by move=> R S p q u d e d1 e1 p0 q0 p1 q1 cross u0 limits; exact: contraction.
Qed.

Theorem quilt_checked : quilt_statement.
Proof. by move=> *; exact: quilt_bound. Qed.

Theorem curve_checked : curve_statement.
Proof. by move=> R Q size infl f i0 least f0 x y; exact: (subadditive i0 least f0). Qed.

Theorem pruning_checked : pruning_statement.
Proof.
move=> P Rec owner group m; split=> [C mono mP|C C']; first exact: prune.
exact: conjunction.
Qed.

Theorem k_anonymity_checked : k_anonymity_statement.
Proof.
move=> P Rec owner group m k largest mP Lm above; rewrite left_by_card.
by apply: k_anonymity => // I Im; exact: (largest_providers Lm above Im).
Qed.

Theorem counting_checked : counting_statement.
Proof.
move=> G m B N; split=> [|R Omega mu delta bad heard mu0 each]; last exact: union_bound.
rewrite /N -tree_size; apply: eq_bigr => i _; rewrite -sum1_card big_mkcond /=.
by apply: eq_bigr => t _; rewrite inE; case: ifP.
Qed.
