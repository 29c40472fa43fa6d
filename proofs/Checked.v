(* Every statement of Statements.v, proved, with what its proof assumes. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides TwoSides Levels Chain Certificates Releases
  Shown Episodes Contraction Tradeoffs Influence Coalitions Counting Sampling.

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

Theorem flow_checked : flow_statement.
Proof.
by move=> R S A lim w p q v L w0 along excess feas; exact: (flow_bound w0 along excess feas).
Qed.

Theorem endless_checked : endless_statement.
Proof.
move=> R S pi Q p0 Q0 Q1 pQ a b f b1 f1 rR rL fR fL cR cL T i k levels g x x' Tik ok lb lf la.
exact: (endless p0 Q0 Q1 pQ b1 f1 cR cL Tik ok lb lf la).
Qed.

Theorem shown_checked : shown_statement.
Proof.
move=> R S V observe m P a ch a1 T i k Tik occurs so no FR FL fR fL rR rL g x x'.
exact: (shown_sweep ch a1 Tik so no rR rL).
Qed.

Theorem secret_checked : secret_statement.
Proof.
move=> R S V observe m P a ch a1 T i k Tik occurs so no FR FL fR fL rR rL L va vb optimum g.
exact: (observed ch a1 Tik so no rR rL optimum).
Qed.

Theorem episode_checked : episode_statement.
Proof.
move=> R S m P ch P1 T i n k levels Tink ok occurs so no FR FL fR fL rR rL CL CR g w w'.
exact: (episode_windows ok ch P1 Tink so no rR rL).
Qed.

Theorem episode_shown_checked : episode_shown_statement.
Proof.
move=> R S V observe m P a ch P1 a1 T i n k Tink occurs so no FR FL fR fL rR rL CL CR g w w'.
exact: (episode_inner a1 ch P1 Tink so no rR rL).
Qed.

Theorem contraction_checked : contraction_statement.
Proof.
by move=> R S p q u d e d1 e1 p0 q0 p1 q1 cross u0 limits; exact: contraction.
Qed.

Theorem box_checked : box_statement.
Proof.
move=> R S K D f g K0 K1 chg F d e d1 e1 roots cross F0 step k x x' h.
exact: (box K0 K1 chg d1 e1 roots cross F0 step).
Qed.

Theorem tradeoff_rules_checked : tradeoff_rules_statement.
Proof. by move=> R O P Q U a b; split; [exact: composition | exact: complement]. Qed.

Theorem tradeoff_checked : tradeoff_statement.
Proof.
move=> R S O m P ch P1 T i k Tik g r l M levels recR recL x x' ne px px'.
exact: (tradeoff_node ch P1 Tik levels recR recL ne px px').
Qed.

Theorem scalar_checked : scalar_statement.
Proof.
move=> R S p q u c J J1 above below eta b value u01; split.
- exact: value_eta.
- exact: coupling.
- exact: scalar.
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
move=> G m B N; split=> [|R Omega mu delta bad answers mu0 each]; last exact: union_bound.
rewrite /N -tree_size; apply: eq_bigr => i _; rewrite -sum1_card big_mkcond /=.
by apply: eq_bigr => t _; rewrite inE; case: ifP.
Qed.

Theorem table_checked : table_statement.
Proof.
move=> R m N D w t cells upper lower N0 D0 order sizes enclose j jm returned.
exact: (table N0 D0 order sizes enclose jm).
Qed.

Theorem two_sided_checked : two_sided_statement.
Proof.
by move=> R a bases a01 ok; split=> [g|z]; [exact: digits | exact: two_sided_law].
Qed.
