(* Episodes: the secret is all of a run of time points, and any two of its assignments are compared. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides TwoSides Levels Chain Releases Shown.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Episode.
Variables (R : realFieldType) (S : finType) (m : S -> R) (P : nat -> S -> S -> R).
Hypothesis ch : chain m P.
Hypothesis P1 : forall t x, \sum_z P t x z = 1.
Variables (T i n k : nat).
Hypothesis Tink : T = (i + (n + k).+1)%N.
Implicit Types (x : S) (v w l r : seq S).

Let right := beyond (kernel_right P T) (fun=> 1 : R) k.
Let left := beyond (kernel_left P) m i.
Let both_ends := both (kernel_left P) m (kernel_right P T) (fun=> 1) i k.

Lemma path_cat t x v r :
  path P t x (v ++ r) = path P t x v * path P (t + size v) (seq.last x v) r.
Proof.
elim: v t x => [|z v IH] t x /=; first by rewrite addn0 mul1r.
by rewrite IH mulrA addSnnS.
Qed.

Lemma path_ge0 t x v : 0 <= path P t x v.
Proof. by elim: v t x => [|z v IH] t x; rewrite ?ler01 ?mulr_ge0 ?(matrix_ge0 ch). Qed.

Lemma law_ge0 s : 0 <= law m P s.
Proof. by case: s => [|x s]; rewrite ?ler01 ?mulr_ge0 ?(start_ge0 ch) ?path_ge0. Qed.

Lemma right1 j x : beyond (kernel_right P T) (fun=> 1 : R) j x (fun=> 1) = 1.
Proof.
elim: j x => [|j IH] x /=; first by rewrite mulr1.
by rewrite -[RHS](P1 (T - j.+2) x); apply: eq_bigr => z _; rewrite IH mulr1.
Qed.

Lemma left1 x : left x (fun=> 1) = probability m P T i x.
Proof.
have -> : probability m P T i x = partial_mean m P T i (fun=> 1) x.
  by apply: eq_bigr => s _; rewrite mulr1.
by rewrite (partial_mean_both m P Tink) /both right1.
Qed.

Lemma content_block l w r : size l = i -> size w = n.+1 ->
  content i (i + n) (l ++ w ++ r) = w.
Proof.
by move=> sl sw; rewrite /content -addnS addKn drop_size_cat // take_size_cat.
Qed.

Lemma block_sum (g : seq S -> R) x v : size v = n ->
  \sum_(s : T.-tuple S | content i (i + n) s == x :: v) law m P s * g s
    = path P i x v * both_ends x (seq.last x v) (fun l r => g (rev l ++ x :: v ++ r)).
Proof.
move=> sv; rewrite /both_ends /both -/(left x _) /left left_paths.
pose G s : R := if content i (i + n) s == x :: v then law m P s * g s else 0.
rewrite big_mkcond /= (big_tuple_split G Tink).
rewrite (big_tuple_rev _ (fun l => \sum_(r : (n + k).+1.-tuple S) G (l ++ r))) mulr_sumr.
apply: eq_bigr => l _.
rewrite (@big_tuple_split _ _ _ n.+1 k (fun r => G (rev l ++ r))) //.
have sz : size (x :: v) == n.+1 by rewrite /= sv.
have srev : size (rev l) = i by rewrite size_rev size_tuple.
rewrite (bigD1 (Tuple sz)) //= [X in _ + X]big1 ?addr0 => [|w wne]; last first.
  rewrite big1 // => r _; rewrite /G content_block ?size_tuple //.
  by case: eqP => // e; case/eqP: wne; apply: val_inj.
rewrite right_paths; last by rewrite Tink addnS ltnS addnA leq_addl.
rewrite !mulr_sumr; apply: eq_bigr => r _; rewrite /G.
have := content_block r srev (eqP sz); rewrite /= => ->.
rewrite eqxx law_split path_cat size_tuple sv.
have -> : (T - k.+1 = i + n)%N by rewrite Tink addnS addnA -addnS addnK.
by rewrite -!mulrA [in RHS]mulrCA; congr (_ * _); rewrite mulrCA.
Qed.

Lemma block_probability x v : size v = n ->
  episode_probability m P T i (x :: v) = path P i x v * probability m P T i x.
Proof.
move=> sv; rewrite /episode_probability /= sv.
transitivity (\sum_(s : T.-tuple S | content i (i + n) s == x :: v) law m P s * 1).
  by apply: eq_bigr => s _; rewrite mulr1.
by rewrite (block_sum (fun=> 1)) // /both_ends /both right1 -left1.
Qed.

Lemma block_mean (g : seq S -> R) x v : size v = n -> 0 < episode_probability m P T i (x :: v) ->
  episode_mean m P T i g (x :: v)
    = both_ends x (seq.last x v) (fun l r => g (rev l ++ x :: v ++ r)) / probability m P T i x.
Proof.
move=> sv; rewrite /episode_mean /= sv block_sum // block_probability // => pos.
rewrite -mulf_div divff ?mul1r //.
by apply: contraTneq pos => ->; rewrite mul0r ltxx.
Qed.

Lemma possible_at w j d : size w = n.+1 -> (j <= n)%N ->
  0 < episode_probability m P T i w -> 0 < probability m P T (i + j) (nth d w j).
Proof.
move=> sw jn; rewrite /episode_probability sw /= => pos; apply: lt_le_trans pos _.
rewrite /probability [X in X <= _]big_mkcond [X in _ <= X]big_mkcond /=.
apply: ler_sum => s _; case: eqP => [<-|_]; last by case: ifP => _; rewrite ?law_ge0.
have -> : nth d (content i (i + n) s) j = nth d s (i + j).
  by rewrite /content nth_take ?nth_drop // -addnS addKn.
by rewrite (set_nth_default d) ?eqxx // size_tuple Tink ltn_add2l ltnS (leq_trans jn) ?leq_addr.
Qed.

Lemma last_block x v : size v = n -> nth x (x :: v) n = seq.last x v.
Proof. by move=> <-; rewrite -[size v]/((size (x :: v)).-1) nth_last. Qed.

Variable occurs : nat -> pred S.
Hypothesis start_occurs : forall x, ~~ occurs 0%N x -> m x = 0.
Hypothesis next_occurs :
  forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0.

Lemma possible_occurs x : 0 < probability m P T i x -> occurs i x.
Proof.
apply: contraTT => no; rewrite -left1 /left (beyond_impossible _ _ no) ?ltxx //.
exact: (support_left ch start_occurs next_occurs).
Qed.

Variables (DL DR : seq S -> seq S -> R) (fL fR : nat -> S -> S -> R) (gL gR : nat -> R).
Hypotheses (chgL : charges DL fL gL) (chgR : charges DR fR gR).
Variables (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S).
Hypothesis recR : recursion (kernel_right P T) (fun=> 1) fR gR (fun=> predT) FR finR.
Hypothesis recL : recursion (kernel_left P) m fL gL occurs FL finL.
Variables (CL CR : R).
Hypothesis ends : end_bounds m P T i (i + n) k FL FR finL finR CL CR.

Theorem episode (own : R) (g : seq S -> R) w w' : 0 <= own ->
    (forall s, size s = T -> 0 <= g s) -> size w = n.+1 -> size w' = n.+1 ->
    (forall l l' r r', size l = i -> size l' = i -> size r = k -> size r' = k ->
       g (rev l ++ w ++ r) <= own * DL l l' * DR r r' * g (rev l' ++ w' ++ r')) ->
    0 < episode_probability m P T i w -> 0 < episode_probability m P T i w' ->
  episode_mean m P T i g w <= own * CL * CR * episode_mean m P T i g w'.
Proof.
move=> own0 g0; case: w => // x v [sv]; case: w' => // x' v' [sv'] gl pos pos'.
have [CL1 CR1 endL endR] := ends.
have px : 0 < probability m P T i x.
  by have := @possible_at (x :: v) 0 x; rewrite addn0 /= sv; apply.
have px' : 0 < probability m P T i x'.
  by have := @possible_at (x' :: v') 0 x; rewrite addn0 /= sv'; apply.
have py : 0 < probability m P T (i + n) (seq.last x v).
  have := @possible_at (x :: v) n x; rewrite last_block //= sv; exact.
have py' : 0 < probability m P T (i + n) (seq.last x' v').
  have := @possible_at (x' :: v') n x'; rewrite last_block //= sv'; exact.
rewrite !block_mean //.
pose cL := if x == x' then 1 else FL i x x'.
have cL0 : 0 <= cL.
  rewrite /cL; case: eqP => [_|/eqP ne]; first exact: ler01.
  by have [fin _] := endL _ _ ne px px';
    have [] := recL (possible_occurs px) (possible_occurs px') ne fin.
have cLle : cL * (probability m P T i x' / probability m P T i x) <= CL.
  rewrite /cL; case: eqP => [<-|/eqP ne]; first by rewrite divff ?gt_eqF // mul1r.
  by have [] := endL _ _ ne px px'.
have size_both l y r : size l = i -> size y = n.+1 -> size r = k -> size (rev l ++ y ++ r) = T.
  by move=> sl sy sr; rewrite !size_cat size_rev sl sy sr Tink addSn.
have supL := support_left ch start_occurs next_occurs.
have supR := support_right ch T.
have := @two_sides R S _ m DL fL gL occurs supL chgL _ _ DR fR gR _ supR chgR i k
  x x' (seq.last x v) (seq.last x' v')
  (fun l r => g (rev l ++ x :: v ++ r)) (fun l r => g (rev l ++ x' :: v' ++ r)) own cL CR
  own0 cL0 (le_trans ler01 CR1).
move=> /(_ _ gl) le.
apply: le_trans (ratio_conditional px px' (le _ _ _)) _.
- by move=> l r sl sr; rewrite g0 // (size_both l (x' :: v') r) //= sv'.
- move=> h h0 hD; rewrite /cL; case: eqP => [<-|/eqP ne]; first by rewrite mul1r.
  have [fin _] := endL _ _ ne px px'.
  exact: (side_bound supL chgL recL (possible_occurs px) (possible_occurs px') ne fin h0 hD).
- move=> h h0 hD; have [<-|ne] := eqVneq (seq.last x v) (seq.last x' v').
    by rewrite ler_pemull // (beyond_ge0 supR).
  have [fin FRle] := endR _ _ ne py py'.
  apply: le_trans (side_bound supR chgR recR isT isT ne fin h0 hD) _.
  by rewrite ler_wpmul2r // (beyond_ge0 supR).
apply: ler_wpmul2r.
  rewrite divr_ge0 ?(ltW px') //; apply: (beyond_ge0 supL) => l sl; apply: (beyond_ge0 supR) => r sr.
  by rewrite g0 // (size_both l (x' :: v') r) //= sv'.
rewrite mulrAC ler_wpmul2r ?(le_trans ler01 CR1) // -mulrA.
exact: ler_wpmul2l.
Qed.

End Episode.

Section Windows.
Variables (R : realFieldType) (S : finType) (levels : seq (window R)).
Hypothesis ok : all (@valid R) levels.

Theorem episode_windows (m : S -> R) (P : nat -> S -> S -> R) (ch : chain m P)
    (P1 : forall t x, \sum_z P t x z = 1) (T i n k : nat) (Tink : T = (i + (n + k).+1)%N)
    (occurs : nat -> pred S) (so : forall x, ~~ occurs 0%N x -> m x = 0)
    (no : forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0)
    (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S)
    (recR : recursion (kernel_right P T) (fun=> 1) (fun j _ _ => begins levels T j)
      (begins levels T) (fun=> predT) FR finR)
    (recL : recursion (kernel_left P) m (fun j _ _ => backward levels j) (backward levels)
      occurs FL finL)
    (CL CR : R) (g : seq S -> R) (w w' : seq S) :
    end_bounds m P T i (i + n) k FL FR finL finR CL CR ->
    within T levels g -> size w = n.+1 -> size w' = n.+1 ->
    0 < episode_probability m P T i w -> 0 < episode_probability m P T i w' ->
  episode_mean m P T i g w
    <= own levels i * (\prod_(i.+1 <= t < (i + n).+1) forward levels t) * CL * CR *
       episode_mean m P T i g w'.
Proof.
move=> ends [g0 gl] sw sw'; rewrite -touching_prod //.
apply: (episode ch P1 Tink so no (charges_left S ok) (charges_right S ok T) recR recL ends) => //.
  exact: prod_ge0.
move=> l l' r r' sl sl' sr sr'.
have size_both y z t : size y = i -> size z = n.+1 -> size t = k -> size (rev y ++ z ++ t) = T.
  by move=> sy sz st; rewrite !size_cat size_rev sy sz st Tink addSn.
apply: le_trans (gl _ (rev l' ++ w' ++ r') _ _) _; rewrite ?size_both //.
by rewrite ler_wpmul2r ?g0 ?size_both // (@paid_around _ _ _ ok T i n k).
Qed.

End Windows.

Section Inner.
Variables (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V) (a : nat -> R).
Hypothesis a1 : forall j, 1 <= a j.

Let a0 j : 0 <= a j. Proof. exact: le_trans ler01 (a1 j). Qed.

(* A run of points pays at most what all of it may pay. *)
Lemma paid_shown_block (b : nat -> R) v v' r r' : size v = size v' -> size r = size r' ->
  paid_shown observe b (v ++ r) (v' ++ r')
    = paid_shown observe (fun j => b (j + size r)%N) v v' * paid_shown observe b r r'.
Proof.
elim: v v' => [|z v IH] [|z' v'] //= => [_ _|[sv] sr]; first by rewrite mul1r.
by rewrite IH // mulrA /level_shown size_cat.
Qed.

Lemma paid_shown_most (b : nat -> R) v v' : (forall j, 1 <= b j) -> size v = size v' ->
  paid_shown observe b v v' <= \prod_(0 <= j < size v) b j.
Proof.
move=> b1; elim: v v' => [|z v IH] [|z' v'] //= => [_|[sv]]; first by rewrite big_geq.
rewrite big_nat_recr //= mulrC; apply: ler_pmul; rewrite ?IH //.
- exact: le_trans ler01 (paid_shown_ge1 observe b1 _ _).
- exact: le_trans ler01 (level_shown_ge1 observe b1 _ _ _).
- by rewrite /level_shown; case: ifP.
Qed.

Theorem episode_inner (m : S -> R) (P : nat -> S -> S -> R) (ch : chain m P)
    (P1 : forall t x, \sum_z P t x z = 1) (T i n k : nat) (Tink : T = (i + (n + k).+1)%N)
    (occurs : nat -> pred S) (so : forall x, ~~ occurs 0%N x -> m x = 0)
    (no : forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0)
    (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S)
    (recR : recursion (kernel_right P T) (fun=> 1) (level_shown observe (fun j => a (T - j.+1)%N))
      (fun j => a (T - j.+1)%N) (fun=> predT) FR finR)
    (recL : recursion (kernel_left P) m (level_shown observe a) a occurs FL finL)
    (CL CR : R) (g : seq S -> R) (w w' : seq S) :
    end_bounds m P T i (i + n) k FL FR finL finR CL CR ->
    within_shown observe a T g -> size w = n.+1 -> size w' = n.+1 ->
    0 < episode_probability m P T i w -> 0 < episode_probability m P T i w' ->
  episode_mean m P T i g w
    <= (\prod_(i <= t < (i + n).+1) a t) * CL * CR * episode_mean m P T i g w'.
Proof.
move=> ends [g0 gl] sw sw'.
pose b j := a (T - j.+1); have b1 j : 1 <= b j by exact: a1.
apply: (episode ch P1 Tink so no (charges_shown observe a1) (charges_shown observe b1) recR recL ends)
  => //; first by apply: prodr_ge0.
move=> l l' r r' sl sl' sr sr'.
have size_both y z t : size y = i -> size z = n.+1 -> size t = k -> size (rev y ++ z ++ t) = T.
  by move=> sy sz st; rewrite !size_cat size_rev sy sz st Tink addSn.
apply: le_trans (gl _ (rev l' ++ w' ++ r') _ _) _; rewrite ?size_both //.
rewrite ler_wpmul2r ?g0 ?size_both //.
rewrite (@paid_shown_split _ _ _ _ _ T) ?size_cat ?sl ?sl' ?sw ?sw' ?sr ?sr' ?addSn //.
rewrite paid_shown_block ?sw ?sr // mulrA; apply: ler_wpmul2r.
  exact: le_trans ler01 (paid_shown_ge1 observe b1 _ _).
rewrite mulrC; apply: ler_wpmul2r; first exact: le_trans ler01 (paid_shown_ge1 observe a1 _ _).
apply: le_trans (paid_shown_most (fun j => b1 (j + k)%N) (etrans sw (esym sw'))) _.
rewrite sw -{1}[i]add0n big_addn -addnS addKn big_nat_rev /= add0n.
rewrite [X in X <= _]big_nat [X in _ <= X]big_nat; apply: ler_prod => j jn.
have jn1 : (j < n.+1)%N by [].
rewrite /b; suff -> : (T - (n.+1 - j.+1 + k).+1 = j + i)%N by rewrite a0 lexx.
rewrite Tink addnS !subSS; apply/eqP; rewrite -(eqn_add2r (n - j + k)) subnK; last first.
  by rewrite (leq_trans _ (leq_addl _ _)) // leq_add2r leq_subr.
by rewrite [(j + i)%N]addnC -addnA [(j + _)%N]addnA subnKC.
Qed.

End Inner.

(* The secret is what a function of the state at a time point shows. *)
Section Observed.
Variables (R : realFieldType) (S : finType) (V : eqType) (observe : S -> V).
Variables (m : S -> R) (P : nat -> S -> S -> R) (a : nat -> R).
Hypotheses (ch : chain m P) (a1 : forall j, 1 <= a j).
Variables (T i k : nat).
Hypothesis Tik : T = (i + k.+1)%N.
Variable occurs : nat -> pred S.
Hypothesis so : forall x, ~~ occurs 0%N x -> m x = 0.
Hypothesis no : forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0.
Variables (FR FL : nat -> S -> S -> R) (finR finL : nat -> rel S).
Hypothesis recR : recursion (kernel_right P T) (fun=> 1)
  (level_shown observe (fun j => a (T - j.+1)%N)) (fun j => a (T - j.+1)%N) (fun=> predT) FR finR.
Hypothesis recL : recursion (kernel_left P) m (level_shown observe a) a occurs FL finL.
Variables (L : R) (va vb : V).
Hypothesis optimum : forall W : S -> R, (forall x, 0 <= W x) ->
  (forall x, ~~ occurs i x -> W x = 0) ->
  (forall x x', occurs i x -> occurs i x' -> x != x' -> finL i x x' -> finR k x x' ->
     W x <= level_shown observe a i x x' * FL i x x' * FR k x x' * W x') ->
  \sum_(x | observe x == va) W x <= L * (\sum_(x | observe x == vb) W x).

Theorem observed g : within_shown observe a T g ->
    0 < observed_probability observe m P T i va -> 0 < observed_probability observe m P T i vb ->
  observed_mean observe m P T i g va
    <= L * (observed_probability observe m P T i vb / observed_probability observe m P T i va) *
       observed_mean observe m P T i g vb.
Proof.
move=> wi pa pb; apply: ratio_conditional => //; apply: optimum => [x|x nx|x x' ox ox' ne fl fr].
- have [g0 _] := wi; apply: sumr_ge0 => s _.
  by rewrite mulr_ge0 ?(law_ge0 ch) ?g0 ?size_tuple.
- rewrite (partial_mean_both m P Tik); apply: beyond_impossible nx.
  exact: (support_left ch so no).
- exact: (shown_sweep ch a1 Tik so no recR recL wi).
Qed.

End Observed.
